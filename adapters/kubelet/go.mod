// Marks the module's root. What each release requires is in releases/, chosen by -modfile.
module numaproof/adapters/kubelet

go 1.24.0
