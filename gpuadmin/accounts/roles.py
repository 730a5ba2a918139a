"""The three roles and what each of them may do. docs/permissions.md is held to this table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class Role(IntEnum):
    """Ordered: who may do a thing, every higher role may do too. NONE signs in and sees nothing."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """As in groups, tokens and audit rows: ``viewer``; "" for NONE."""
        return "" if self is Role.NONE else self.name.lower()

    @classmethod
    def named(cls, label: str) -> Role:
        """The role of a label. Raises ValueError for one that is none."""
        found = {role.label: role for role in cls if role is not cls.NONE}
        if label not in found:
            raise ValueError(f"There is no role “{label}”: it is one of {', '.join(found)}.")
        return found[label]

    @classmethod
    def highest(cls, labels: list[str]) -> Role:
        """The highest role among group names; groups that are no role count for nothing."""
        return max((role for role in cls if role.label in labels), default=cls.NONE)


@dataclass(frozen=True)
class Rule:
    """``key`` stands in audit rows; ``sentence`` completes "who may …"."""

    key: str
    least: Role
    sentence: str


class Permission(Enum):
    """Everything that the console lets a person do."""

    VIEW = Rule("view", Role.VIEWER, "see every page and read every address of the REST interface")
    TAINT = Rule(
        "operate.taint",
        Role.OPERATOR,
        "preview, add, remove and undo taints of nodes",
    )
    CORDON = Rule(
        "operate.cordon", Role.OPERATOR, "close nodes to new pods (cordon) and open them again"
    )
    CANCEL = Rule(
        "operate.cancel",
        Role.OPERATOR,
        "cancel an operation that waits in the queue, whoever asked for it",
    )
    ACCOUNT = Rule("account", Role.VIEWER, "change their own password, API tokens and sessions")
    USERS = Rule(
        "admin.users",
        Role.ADMIN,
        "see and add users, and change their role, password, tokens and sessions",
    )
    CLUSTER = Rule(
        "admin.cluster",
        Role.ADMIN,
        "give, replace and remove the kubeconfig by which the console reaches the cluster",
    )

    @property
    def key(self) -> str:
        return self.value.key

    @property
    def least(self) -> Role:
        return self.value.least

    @property
    def sentence(self) -> str:
        return self.value.sentence
