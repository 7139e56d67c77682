"""The entry point: offers `cluster.sync` and accesses of the cluster's shared memory."""

from cake_cluster.emulated import EMULATES
from cake_cluster.load import LOAD
from cake_cluster.remote import REMOTE
from cake_cluster.reread import REREADS
from cake_cluster.sync import CLUSTER_SYNC
from cake_core import hookimpl

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (CLUSTER_SYNC, *REMOTE, LOAD)


@hookimpl
def cake_rereads():
    return REREADS


@hookimpl
def cake_emulates():
    return EMULATES
