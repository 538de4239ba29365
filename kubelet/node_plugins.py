"""The device plugins of a node, one for each resource."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.kubelet.device_plugins import DevicePlugin

if TYPE_CHECKING:
    from numaproof.kubelet.node_state import NodeState
    from numaproof.protocol.messages import DeviceResource


@dataclass
class NodePlugins:
    """Plugins that run, and those that have left since the kubelet started.

    A plugin whose devices all become unhealthy leaves instead, if no container has any of them:
    the kubelet must come to the same conclusion. When it returns, the kubelet has to find it.
    """

    _plugins: dict[str, DevicePlugin] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)
    _count: int = 0

    async def report(self, report: DeviceResource, state: NodeState, *, leaves: bool) -> None:
        """Reports the devices of a resource, or stops its plugin if it `leaves`."""
        name = report.resource
        if name not in self._plugins or name in self._left:
            await self._start(report, state)
            return
        self._plugins[name].update(report)
        if leaves:
            self._left.add(name)
            await self._plugins[name].stop()

    async def stop(self) -> None:
        """Ends all plugins."""
        for plugin in self._plugins.values():
            await plugin.stop()
        self._plugins, self._left = {}, set()

    def healthy(self) -> frozenset[tuple[str, str, int | None]]:
        """The healthy devices: the resource, the device and each node; None if unknown."""
        return frozenset(device for one in self._plugins.values() for device in one.healthy())

    def prepared_files(self) -> frozenset[str]:
        """The files of the devices that the plugins were asked to prepare."""
        return frozenset(file for one in self._plugins.values() for file in one.prepared_files)

    def leaves(self, report: DeviceResource, state: NodeState) -> bool:
        """Whether a plugin may leave instead of reporting."""
        name = report.resource
        return (
            name in self._plugins and self._plugins[name].leaves(report) and not state.holds(name)
        )

    async def _start(self, report: DeviceResource, state: NodeState) -> None:
        returns = report.resource in self._left
        folder = state.plugin_registry if returns else state.plugin_socket.parent
        plugin = DevicePlugin(folder, f"plugin{self._count}.sock", report)
        self._count += 1
        self._plugins[report.resource] = plugin
        self._left.discard(report.resource)
        await plugin.start()
        if not returns:
            await plugin.register()
