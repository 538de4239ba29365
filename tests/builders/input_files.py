"""Files that commands read: a configuration, a pod and a finding of fuzzing."""

from __future__ import annotations

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Gi}}}]}
"""

FINDING = """\
cases:
- id: fuzz
  title: two pods have CPU 1
  requirements: [CPU-STATIC-007]
  level: invariants
  machine:
    num_cores: 2
    num_sockets: 1
    memory_capacity: 1073741824
    topology:
    - {node_id: 0, memory: 1073741824, cores: [
        {core_id: 0, thread_ids: [0], socket_id: 0}, {core_id: 1, thread_ids: [1], socket_id: 0}]}
  steps:
  - start: {config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}}
    expect: anything
  - admit: {pod: a, containers: {app: {limits: {cpu: "1", memory: 64Mi}}}}
    expect: anything
"""
