// Every age ticks: <time data-age datetime="…"> counts on from the server's clock, not the browser's.
const MINUTE = 60, HOUR = 3600, DAY = 86400;

// The same words as gpuadmin.web.pictures.text.age, so that nothing jumps when the server renders.
export function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < MINUTE) return `${s} s`;
  if (s < HOUR) return `${Math.floor(s / MINUTE)} m`;
  if (s < DAY) return pair(Math.floor(s / HOUR), "h", Math.floor((s % HOUR) / MINUTE), "m");
  return pair(Math.floor(s / DAY), "d", Math.floor((s % DAY) / HOUR), "h");
}

function pair(big, bigUnit, small, smallUnit) {
  return small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`;
}

let skew = 0; // server minus browser, in milliseconds

export function readClock() {
  const now = document.querySelector("[data-now]")?.dataset.now;
  if (now) skew = Date.parse(now) - Date.now();
}

export function tick() {
  const now = Date.now() + skew;
  for (const element of document.querySelectorAll("time[data-age]")) {
    const text = age((now - Date.parse(element.dateTime)) / 1000) + (element.dataset.age || "");
    if (element.textContent !== text) element.textContent = text;
  }
}

readClock();
setInterval(() => { if (!document.hidden) tick(); }, 1000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
document.addEventListener("gpuadmin:patched", () => { readClock(); tick(); });
