"""The feature gates that the kubelet knows, by release.

One row a gate, one column a release. A letter is its maturity: alpha, beta, stable, deprecated; a
capital letter means on by default, ``!`` that it is locked to its default, and a dot that the
release does not know the gate. A second table says which gates need which others.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Maturity = Literal["alpha", "beta", "stable", "deprecated"]

COLUMNS = ("1.33", "1.34", "1.35", "1.36")
"""The releases that the table has columns for."""

_MATURITIES: dict[str, Maturity] = {
    "a": "alpha",
    "b": "beta",
    "s": "stable",
    "d": "deprecated",
}


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release.

    Attributes:
        maturity: how far it has come.
        default: whether it is on by default.
        locked: whether it is locked to that.
        needs: the gates that must be on where it is on, those that are always on left out.
    """

    maturity: Maturity
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


def of_release(version: str) -> Mapping[str, Gate]:
    """The gates of a release, by name."""
    column = COLUMNS.index(version) + 1
    cells = (row.split() for row in _TABLE.strip().splitlines())
    needs = _needs(column + 1)
    return MappingProxyType(
        {
            row[0]: _gate(row[column], tuple(needs.get(row[0], ())))
            for row in cells
            if row[column] != "."
        }
    )


def _needs(column: int) -> Mapping[str, list[str]]:
    needs: dict[str, list[str]] = {}
    for row in _DEPENDENCIES.strip().splitlines():
        cells = row.split()
        if cells[column] == "x":
            needs.setdefault(cells[0], []).append(cells[1])
    return needs


def _gate(cell: str, needs: tuple[str, ...]) -> Gate:
    letter = cell[0]
    return Gate(
        _MATURITIES[letter.lower()],
        default=letter.isupper(),
        locked=cell.endswith("!"),
        needs=needs,
    )


_TABLE = """
APIResponseCompression                               B  B  B  B
APIServerIdentity                                    B  B  B  B
APIServerTracing                                     B  S! S! S!
APIServingWithRoutine                                a  a  a  a
AggregatedDiscoveryRemoveBetaType                    D  D  D! D!
AllowDNSOnlyNodeCSR                                  d  d  d  d
AllowInsecureKubeletCertificateSigningRequests       d  d  d  d
AllowOverwriteTerminationGracePeriodSeconds          d  d  d! d!
AllowParsingUserUIDFromCertAuth                      B  B  B  B
AllowServiceExternalIPs                              .  .  .  S
AllowServiceLBStatusOnNonLB                          d! d! .  .
AllowUnsafeMalformedObjectDeletion                   a  a  a  a
AnonymousAuthConfigurableEndpoints                   B  S! S! S!
AnyVolumeDataSource                                  S! S! S! S!
AtomicFIFO                                           .  .  .  B
AuthorizeNodeWithSelectors                           B  S! S! S!
AuthorizePodWebsocketUpgradeCreatePermission         .  .  B  B
AuthorizeWithSelectors                               B  S! S! S!
BtreeWatchCache                                      S! S! S! S!
CBORServingAndStorage                                a  a  a  a
CPUManagerPolicyAlphaOptions                         a  a  a  a
CPUManagerPolicyBetaOptions                          B  B  B  B
CPUManagerPolicyOptions                              S! S! S! S!
CRDObservedGenerationTracking                        .  .  b  B
CRDValidationRatcheting                              S! S! S! S!
CRIListStreaming                                     .  .  .  a
CSIMigrationPortworx                                 S! S! S! .
CSIServiceAccountTokenSecrets                        .  .  B  S!
CSIVolumeHealth                                      a  a  a  a
ChangeContainerStatusOnKubeletRestart                .  .  d  d
ClearingNominatedNodeNameAfterBinding                .  a  B  B
ClientsAllowCARotation                               .  .  .  B
ClientsAllowCBOR                                     a  a  a  a
ClientsAllowTLSCacheGC                               .  .  .  B
ClientsPreferCBOR                                    a  a  a  a
CloudControllerManagerWatchBasedRoutesReconciliation .  .  a  a
CloudControllerManagerWebhook                        a  a  a  a
ClusterTrustBundle                                   b  b  b  b
ClusterTrustBundleProjection                         b  b  b  b
ComponentFlagz                                       a  a  a  B
ComponentStatusz                                     a  a  a  B
ConcurrentWatchObjectDecode                          b  b  b  b
ConsistentListFromCache                              B  S! S! S!
ConstrainedImpersonation                             .  .  a  B
ContainerCheckpoint                                  B  B  B  B
ContainerRestartRules                                .  a  B  B
ContainerStopSignals                                 a  a  a  a
CoordinatedLeaderElection                            b  b  b  b
CronJobsScheduledAnnotation                          S! S! .  .
CrossNamespaceVolumeDataSource                       a  a  a  a
CustomCPUCFSQuotaPeriod                              a  a  a  S
CustomResourceFieldSelectors                         S! S! S! S!
DRAAdminAccess                                       a  B  B  S!
DRAConsumableCapacity                                .  a  a  B
DRADeviceBindingConditions                           .  a  a  B
DRADeviceTaintRules                                  .  .  a  b
DRADeviceTaints                                      a  a  a  B
DRAExtendedResource                                  .  a  a  B
DRAListTypeAttributes                                .  .  .  a
DRANodeAllocatableResources                          .  .  .  a
DRAPartitionableDevices                              a  a  a  B
DRAPrioritizedList                                   a  B  B  S
DRAResourceClaimDeviceStatus                         B  B  B  B
DRAResourceClaimGranularStatusAuthorization          .  .  .  B
DRAResourcePoolStatus                                .  .  .  a
DRASchedulerFilterTimeout                            .  B  B  B
DRAWorkloadResourceClaims                            .  .  .  a
DeclarativeValidation                                B  B  B  S!
DeclarativeValidationBeta                            .  .  .  B
DeclarativeValidationTakeover                        b  b  b  d
DeploymentReplicaSetTerminatingReplicas              a  a  B  B
DetectCacheInconsistency                             .  B  B  B
DevicePluginCDIDevices                               S! .  .  .
DisableAllocatorDualWrite                            b  S  S! S!
DisableCPUQuotaWithExclusiveCPUs                     B  B  B  D
DisableNodeKubeProxyVersion                          D  D  D  D!
DynamicResourceAllocation                            b  S  S! S!
ElasticIndexedJob                                    S! .  .  .
EnvFiles                                             .  a  B  B
EventedPLEG                                          a  a  a  a
ExecProbeTimeout                                     S  S  S! S!
ExtendWebSocketsToKubelet                            .  .  .  B
ExternalServiceAccountTokenSigner                    a  B  B  S!
GangScheduling                                       .  .  a  a
GenericWorkload                                      .  .  a  a
GitRepoVolumeDriver                                  d  d  d  d!
GracefulNodeShutdown                                 B  B  B  B
GracefulNodeShutdownBasedOnPodPriority               B  B  B  B
HPAConfigurableTolerance                             a  a  B  B
HPAScaleToZero                                       a  a  a  a
HonorPVReclaimPolicy                                 S! S! S! .
HostnameOverride                                     .  a  B  B
ImageMaximumGCAge                                    B  B  S! S!
ImageVolume                                          b  b  B  S!
ImageVolumeWithDigest                                .  .  .  a
InOrderInformers                                     B  B  B  S!
InOrderInformersBatchProcess                         .  .  B  B
InPlacePodLevelResourcesVerticalScaling              .  .  a  B
InPlacePodVerticalScaling                            B  B  S! S!
InPlacePodVerticalScalingAllocatedStatus             d  d  d  .
InPlacePodVerticalScalingExclusiveCPUs               a  a  a  a
InPlacePodVerticalScalingExclusiveMemory             .  a  a  a
InPlacePodVerticalScalingInitContainers              .  .  .  B
InTreePluginPortworxUnregister                       a  a  a  .
InformerResourceVersion                              a  a  S  S
JobBackoffLimitPerIndex                              S! S! S! S!
JobManagedBy                                         B  B  S! S!
JobPodReplacementPolicy                              B  S! S! S!
JobSuccessPolicy                                     S! S! S! S!
KMSv1                                                d  d  d  d
KubeletCgroupDriverFromCRI                           B  S! S! S!
KubeletCrashLoopBackOffMax                           a  a  B  B
KubeletEnsureSecretPulledImages                      a  a  B  B
KubeletFineGrainedAuthz                              B  B  B  S!
KubeletInUserNamespace                               a  a  a  a
KubeletPSI                                           a  B  B  S!
KubeletPodResourcesDynamicResources                  a  B  B  S!
KubeletPodResourcesGet                               a  B  B  S!
KubeletPodResourcesListUseActivePods                 .  D  D  D
KubeletRegistrationGetOnExistsOnly                   d  d  d  d
KubeletSeparateDiskGC                                B  B  B  B
KubeletServiceAccountTokenForCredentialProviders     a  B  B  B
KubeletTracing                                       B  S! S! S!
LegacySidecarContainers                              d  .  .  .
ListFromCacheSnapshot                                a  B  B  B
LoadBalancerIPMode                                   S! S! .  .
LocalStorageCapacityIsolationFSQuotaMonitoring       b  b  b  b
LogarithmicScaleDown                                 S! S! S! S!
ManifestBasedAdmissionControlConfig                  .  .  .  a
MatchLabelKeysInPodAffinity                          S! S! S! S!
MatchLabelKeysInPodTopologySpread                    B  B  B  B
MatchLabelKeysInPodTopologySpreadSelectorMerge       .  B  B  B
MaxUnavailableStatefulSet                            a  a  b  b
MemoryManager                                        S! S! S! .
MemoryQoS                                            a  a  a  a
MultiCIDRServiceAllocator                            S  S! S! S!
MutableCSINodeAllocatableCount                       a  b  B  S!
MutablePVNodeAffinity                                .  .  a  a
MutablePodResourcesForSuspendedJobs                  .  .  a  B
MutableSchedulingDirectivesForSuspendedJobs          .  .  a  B
MutatingAdmissionPolicy                              a  b  b  S
NFTablesProxyMode                                    S! S! S! S!
NodeDeclaredFeatures                                 .  .  a  B
NodeInclusionPolicyInPodTopologySpread               S! S! S! S!
NodeLogQuery                                         b  b  b  S!
NodeSwap                                             B  S! S! S!
NominatedNodeNameForExpectation                      .  a  B  B
OpenAPIEnums                                         B  B  B  B
OpportunisticBatching                                .  .  B  B
OrderedNamespaceDeletion                             B  S! S! S!
PLEGOnDemandRelist                                   .  .  .  B
PersistentVolumeClaimUnusedSinceTime                 .  .  .  a
PodAndContainerStatsFromCRI                          a  a  a  a
PodCertificateRequest                                .  a  b  b
PodDeletionCost                                      B  B  B  B
PodDisruptionConditions                              S! .  .  .
PodIndexLabel                                        S! S! .  .
PodLevelResourceManagers                             .  .  .  a
PodLevelResources                                    a  B  B  B
PodLifecycleSleepAction                              B  S! S! S!
PodLifecycleSleepActionAllowZero                     B  S! S! S!
PodLogsQuerySplitStreams                             a  a  a  a
PodObservedGenerationTracking                        a  B  S! S!
PodReadyToStartContainersCondition                   B  B  B  B
PodSchedulingReadiness                               S! S! S! S!
PodTopologyLabelsAdmission                           a  a  B  B
PodsAPI                                              .  .  .  a
PortForwardWebsockets                                B  B  B  B
PreferSameTrafficDistribution                        a  B  S! S!
PreventStaticPodAPIReferences                        .  B  B  B
ProbeHostPodSecurityStandards                        .  S! .  .
ProcMountType                                        B  B  B  S!
QOSReserved                                          a  a  a  a
RecoverVolumeExpansionFailure                        B  S! S! S!
RecursiveReadOnlyMounts                              S! S! S! S!
ReduceDefaultCrashLoopBackOffDecay                   a  a  a  a
RelaxedDNSSearchValidation                           B  S! S! S!
RelaxedEnvironmentVariableValidation                 B  S! S! S!
RelaxedServiceNameValidation                         .  a  a  B
ReloadKubeletClientCAFile                            .  .  .  B
ReloadKubeletServerCertificateFile                   B  B  B  B
RemoteRequestHeaderUID                               B  B  B  B
ResilientWatchCacheInitialization                    B  S! S! S!
ResourceHealthStatus                                 a  a  a  B
ResourceHealthStatusMessage                          .  .  .  B
RestartAllContainersOnContainerExits                 .  .  a  B
RetryGenerateName                                    S! S! S! S!
RotateKubeletServerCertificate                       B  B  B  B
RuntimeClassInImageCriApi                            a  a  a  a
SELinuxChangePolicy                                  B  B  B  S!
SELinuxMount                                         b  b  b  b
SELinuxMountReadWriteOncePod                         B  B  B  S!
SchedulerAsyncAPICalls                               .  b  b  b
SchedulerAsyncPreemption                             B  B  B  B
SchedulerPopFromBackoffQ                             B  B  B  B
SchedulerQueueingHints                               B  S! S! S!
SeparateCacheWatchRPC                                d  d  d  d!
SeparateTaintEvictionController                      B  S! S! S!
ServiceAccountNodeAudienceRestriction                B  B  B  B
ServiceAccountTokenJTI                               S! S! S! S!
ServiceAccountTokenNodeBinding                       S! S! S! S!
ServiceAccountTokenNodeBindingValidation             S! S! S! S!
ServiceAccountTokenPodNodeInfo                       S! S! S! S!
ServiceCIDRStatusFieldWiping                         .  .  .  D
ServiceTrafficDistribution                           S! S! S! .
ShardedListAndWatch                                  .  .  .  a
SidecarContainers                                    S! S! S! S!
SizeBasedListCostEstimate                            .  B  B  B
SizeMemoryBackedVolumes                              S! S! .  .
StaleControllerConsistencyDaemonSet                  .  .  .  B
StaleControllerConsistencyJob                        .  .  .  B
StaleControllerConsistencyReplicaSet                 .  .  .  B
StaleControllerConsistencyStatefulSet                .  .  .  B
StatefulSetAutoDeletePVC                             S! S! .  .
StatefulSetSemanticRevisionComparison                .  B  B  B
StatefulSetStartOrdinal                              S! .  .  .
StorageCapacityScoring                               a  a  a  a
StorageNamespaceIndex                                D  D  D  D
StorageVersionAPI                                    a  a  a  a
StorageVersionHash                                   B  B  B  B
StorageVersionMigrator                               a  a  b  b
StreamingCollectionEncodingToJSON                    B  S! S! S!
StreamingCollectionEncodingToProtobuf                B  S! S! S!
StrictCostEnforcementForVAP                          S! S! .  .
StrictCostEnforcementForWebhooks                     S! S! .  .
StrictIPCIDRValidation                               a  a  a  B
StructuredAuthenticationConfiguration                B  S! S! S!
StructuredAuthenticationConfigurationEgressSelector  .  B  B  B
StructuredAuthenticationConfigurationJWKSMetrics     .  .  B  B
StructuredAuthorizationConfiguration                 S! S! S! .
SupplementalGroupsPolicy                             B  B  S! S!
SystemdWatchdog                                      B  B  S! S!
TaintTolerationComparisonOperators                   .  .  a  a
TokenRequestServiceAccountUIDValidation              .  B  B  B
TopologyAwareHints                                   S! S! S! .
TopologyAwareWorkloadScheduling                      .  .  .  a
TopologyManagerPolicyAlphaOptions                    a  a  a  a
TopologyManagerPolicyBetaOptions                     B  B  B  B
TopologyManagerPolicyOptions                         S  S  S  S!
TranslateStreamCloseWebsocketRequests                B  B  B  B
UnauthenticatedHTTP2DOSMitigation                    B  B  B  B
UnknownVersionInteroperabilityProxy                  a  a  a  B
UnlockWhileProcessingFIFO                            .  .  .  B
UserNamespacesHostNetworkSupport                     .  .  a  a
UserNamespacesPodSecurityStandards                   a  a  .  .
UserNamespacesSupport                                B  B  B  S!
VolumeAttributesClass                                b  S  S  S!
VolumeLimitScaling                                   .  .  a  a
WatchCacheInitializationPostStartHook                b  b  b  B
WatchFromStorageWithoutResourceVersion               d! d! d! .
WatchList                                            b  B  B  B
WatchListClient                                      b  b  B  B
WinDSR                                               B  S! S! S!
WinOverlay                                           B  S! S! S!
WindowsCPUAndMemoryAffinity                          a  a  a  a
WindowsGracefulNodeShutdown                          a  B  B  B
WindowsHostNetwork                                   d  d  d  d
WorkloadAwarePreemption                              .  .  .  a
WorkloadWithJob                                      .  .  .  a
"""

# A gate, one that it needs, and in which releases the kubelet checks that.
_DEPENDENCIES = """
ClusterTrustBundleProjection                   ClusterTrustBundle                . . x x
DRADeviceBindingConditions                     DRAResourceClaimDeviceStatus      . . x x
DRADeviceTaintRules                            DRADeviceTaints                   . . x x
DRAResourceClaimGranularStatusAuthorization    DRAResourceClaimDeviceStatus      . . . x
DRAWorkloadResourceClaims                      GenericWorkload                   . . . x
DeclarativeValidationTakeover                  DeclarativeValidation             . . x .
ExtendWebSocketsToKubelet                      NodeDeclaredFeatures              . . . x
GangScheduling                                 GenericWorkload                   . . x x
GracefulNodeShutdownBasedOnPodPriority         GracefulNodeShutdown              . . x x
InPlacePodLevelResourcesVerticalScaling        NodeDeclaredFeatures              . . x x
InPlacePodLevelResourcesVerticalScaling        PodLevelResources                 . . x x
InPlacePodVerticalScalingInitContainers        NodeDeclaredFeatures              . . . x
MatchLabelKeysInPodTopologySpreadSelectorMerge MatchLabelKeysInPodTopologySpread . . x x
PodLevelResourceManagers                       PodLevelResources                 . . . x
ProcMountType                                  UserNamespacesSupport             . . x .
ResourceHealthStatusMessage                    ResourceHealthStatus              . . . x
RestartAllContainersOnContainerExits           ContainerRestartRules             . . x x
RestartAllContainersOnContainerExits           NodeDeclaredFeatures              . . x x
StaleControllerConsistencyDaemonSet            AtomicFIFO                        . . . x
StaleControllerConsistencyJob                  AtomicFIFO                        . . . x
StaleControllerConsistencyReplicaSet           AtomicFIFO                        . . . x
StaleControllerConsistencyStatefulSet          AtomicFIFO                        . . . x
StorageVersionAPI                              APIServerIdentity                 . . x x
TopologyAwareWorkloadScheduling                GenericWorkload                   . . . x
UnknownVersionInteroperabilityProxy            APIServerIdentity                 . . x x
UserNamespacesHostNetworkSupport               NodeDeclaredFeatures              . . . x
UserNamespacesHostNetworkSupport               UserNamespacesSupport             . . x .
WindowsGracefulNodeShutdown                    GracefulNodeShutdown              . . x x
WorkloadAwarePreemption                        GangScheduling                    . . . x
WorkloadWithJob                                GenericWorkload                   . . . x
"""
