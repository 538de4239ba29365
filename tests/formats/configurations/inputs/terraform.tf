resource "aws_launch_template" "workers" {
  user_data = base64encode("--kubelet-extra-args '--cpu-manager-policy=static'")
}
