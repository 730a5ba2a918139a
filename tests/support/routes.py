"""What a row of the table of routes is made of: a scene, statuses, and effects to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuadmin.accounts.audit import COMMAND, Actor
from gpuadmin.accounts.models import AccessToken, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import set_role
from gpuadmin.accounts.tokens import create_token
from gpuadmin.fleet.models import Kubeconfig, Node
from gpuadmin.operations import services
from gpuadmin.operations.models import Operation
from tests.operations.world import World

PASSWORD, OTHER = "the password of the tests", "another password of the tests"
API = "/api/v1"


@dataclass
class Scene:
    """One object of each sort; a route is tried on it."""

    world: World
    uid: str
    queued: Operation
    done: Operation
    operator: Actor

    @property
    def names(self) -> dict[str, str]:
        return {"uid": self.uid, "queued": str(self.queued.pk), "done": str(self.done.pk)}

    def change(self) -> dict[str, Any]:
        parameters = {"nodes": [self.uid], "key": "route", "effect": "NoSchedule"}
        return {"kind": "taint.add", "parameters": parameters}

    def create(self) -> dict[str, Any]:
        change = self.change()
        shown = services.preview(
            self.operator, self.world.cluster, change["kind"], change["parameters"]
        )
        return change | {"fingerprint": shown.fingerprint, "reason": "a test"}

    def undo(self) -> dict[str, Any]:
        shown = services.preview_undo(self.operator, self.done)
        return {"fingerprint": shown.fingerprint, "reason": "a test"}

    def taint_form(self) -> dict[str, Any]:
        sent = self.create()
        choice = {"node": "h100-01", "action": "add", "key": "route", "effect": "NoSchedule"}
        return choice | {name: sent[name] for name in ("fingerprint", "reason")}

    def cordon_form(self) -> dict[str, Any]:
        uid = Node.objects.get(name="h100-01").uid
        shown = services.preview(self.operator, self.world.cluster, "node.cordon", {"nodes": [uid]})
        choice = {"node": "h100-01", "action": "cordon"}
        return choice | {"fingerprint": shown.fingerprint, "reason": "a test"}

    def credentials(self) -> dict[str, Any]:
        return {"username": "the-operator", "password": PASSWORD}

    def new_user(self) -> dict[str, Any]:
        return {"name": "new", "role": "viewer", "password": OTHER}

    def state(self) -> tuple[object, ...]:
        """All that a route could change."""
        operations = sorted(Operation.objects.values_list("pk", "state"))
        users = sorted(User.objects.values_list("username", "password", "is_active", "groups"))
        kept = (AccessToken, BrowserSession, Kubeconfig)
        keys = [model.objects.count() for model in kept]
        return (operations, self.world.taints("h100-01"), users, keys)


Effect = Callable[[Scene, Any], bool]


def shows(*texts: str) -> Effect:
    """A reading is allowed when the object is in the answer."""
    return lambda scene, answer: all(
        text.format(**scene.names) in answer.content.decode() for text in texts
    )


def makes(undo: bool = False) -> Effect:
    """A new operation waits in the queue."""

    def made(scene: Scene, answer: Any) -> bool:
        newest = Operation.objects.order_by("-created_at")[0]
        return newest.pk not in (scene.queued.pk, scene.done.pk) and (
            newest.undo_of_id == scene.done.pk if undo else newest.undo_of_id is None
        )

    return made


def has_no_token(user: User) -> bool:
    return not user.auth_token_set.exists()


def has_no_session(user: User) -> bool:
    return not user.sessions.exists()


def forgets_the_kubeconfig(scene: Scene, answer: Any) -> bool:
    return not Kubeconfig.objects.exists()


def cancels(scene: Scene, answer: Any) -> bool:
    scene.queued.refresh_from_db()
    return scene.queued.state == "cancelled"


def account(test: Callable[[User], bool], name: str = "") -> Effect:
    """A change of the user ``name``, or else of the one who asks."""

    def changed(scene: Scene, answer: Any) -> bool:
        return test(User.objects.get(username=name or answer.wsgi_request.user.get_username()))

    return changed


def signs_in(scene: Scene, answer: Any) -> bool:
    return bool(answer.wsgi_request.user.is_authenticated)


def signs_out(scene: Scene, answer: Any) -> bool:
    return not answer.wsgi_request.user.is_authenticated


@dataclass(frozen=True)
class Row:
    """One route and method; ``statuses`` in the order of PEOPLE."""

    method: str
    address: str
    statuses: tuple[int, int, int, int, int]
    effect: Effect
    body: Callable[[Scene], dict[str, Any]] = lambda scene: {}
    public: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.address}"


PAGE = (302, 403, 200, 200, 200)
CHANGE_PAGE = (302, 403, 403, 200, 200)
CHANGE_FORM = (302, 403, 403, 303, 303)
READ = (401, 403, 200, 200, 200)
CHANGE = (401, 403, 403, 200, 200)
CREATE = (401, 403, 403, 201, 201)
OWN_REST = (401, 403, 204, 204, 204)
OWN_NEW = (401, 403, 201, 201, 201)
OWN_404 = (401, 403, 404, 404, 404)  # of somebody else
ADMIN_READ = (401, 403, 403, 403, 200)
ADMIN_REST = (401, 403, 403, 403, 204)
ADMIN_NEW = (401, 403, 403, 403, 201)
OWN_FORM = (302, 403, 303, 303, 303)
ADMIN_TOLD = (401, 403, 403, 403, 422)  # what was sent is wrong
ADMIN_PAGE_TOLD = (302, 403, 403, 403, 422)
ADMIN_PAGE = (302, 403, 403, 403, 200)
ADMIN_FORM = (302, 403, 403, 403, 303)
OPEN = (200, 200, 200, 200, 200)


def person(name: str, role: Role) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    if role is not Role.NONE:
        set_role(COMMAND, name, role)
    create_token(COMMAND, name, "t", cap=None, days=1)
    return user
