"""What the managers share with the rest of Kubernetes: releases, configuration, pods, files."""
