"""The entry point: offers `cluster.sync`."""

from cake_cluster.sync import CLUSTER_SYNC
from cake_core import hookimpl

CAKE_API = 1


@hookimpl
def cake_primitives():
    return (CLUSTER_SYNC,)
