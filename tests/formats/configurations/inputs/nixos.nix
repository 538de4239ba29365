{ config, pkgs, ... }:
{
  services.kubernetes.kubelet.extraOpts = "--cpu-manager-policy=static";
}
