#!/bin/sh
# What an administrator does with kubectl, step by step, against a simulated cluster.
#
#   sh tests/kubectl.sh KUBECTL KUBECONFIG NODE
#
# NODE has GPUs and no tenants. Each step is said before it runs; the first that goes wrong ends it.
set -eu
program=$1 config=$2 node=$3

k() { "$program" --kubeconfig "$config" "$@"; }
step() { echo "== $*"; }
has() { grep -q -- "$1" || { echo "expected: $1" >&2; exit 1; }; }
# ends WITH CODE: the command that follows must end with it.
ends_with() {
    wanted=$1; shift
    code=0; "$@" || code=$?
    [ "$code" -eq "$wanted" ] || { echo "ended with $code, not $wanted: $*" >&2; exit 1; }
}

step get
k get nodes | has "^$node *Ready"
k get nodes -o wide | has "INTERNAL-IP"
k get daemonsets -A | has "gpuadmin-agent"

step describe
k describe node "$node" | has "nvidia.com/gpu"

step label
k label node "$node" rack=7
k get nodes -l rack=7 -o name | has "node/$node"
k label node "$node" rack-

step taint
k taint node "$node" drill=yes:NoSchedule
k describe node "$node" | has "drill=yes:NoSchedule"
k taint node "$node" drill-

step create
k create --validate=false -f - <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: worker
  labels: {app: worker}
  annotations:
    sim.gpuadmin.io/log: |
      hello
      ready to serve
spec:
  nodeSelector: {kubernetes.io/hostname: $node}
  tolerations: [{operator: Exists, key: nvidia.com/gpu}]
  containers:
    - name: main
      image: lab.example/serve:1.9
      resources: {limits: {nvidia.com/gpu: "1"}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: worker}}
EOF
k wait --for=condition=Ready pod/worker --timeout=20s
k describe pod worker | has "Node: *$node"
k get pods | has "^worker *1/1 *Running *0"

step logs
k logs worker | has "^ready to serve"
[ "$(k logs worker --tail=1 | wc -l)" -eq 1 ]
k logs worker --timestamps --since=1h | has "Z hello"
ends_with 1 k logs worker --previous
ends_with 1 k logs worker -c other

step exec
k exec worker -- nvidia-smi -L | has "GPU 0: .*UUID: GPU-"
k exec worker -- echo two words | has "^two words"
k exec worker -- true
ends_with 1 k exec worker -- false
ends_with 7 k exec worker -- sh -c "exit 7"
ends_with 127 k exec worker -- no-such-program
ends_with 126 k exec worker -- /etc

step cordon
k cordon "$node"
k get node "$node" | has "Ready,SchedulingDisabled"

step drain
k get pdb keep | has "^keep *1 *N/A *0"
ends_with 1 k drain "$node" --ignore-daemonsets --force --timeout=3s
k get pod worker | has "Running"
k delete pdb keep
k drain "$node" --ignore-daemonsets --force --timeout=20s
ends_with 1 k get pod worker
k get pods -A -o wide | has "gpuadmin-agent"
k uncordon "$node"

step delete
k create --validate=false -f - <<EOF
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "short"},
 "spec": {"containers": [{"name": "main", "image": "x"}], "nodeName": "$node"}}
EOF
k wait --for=condition=Ready pod/short --timeout=20s
k delete pod short
ends_with 1 k get pod short
echo "all steps done"
