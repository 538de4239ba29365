"""Where a kubelet of some release departs from the documents: releases and named defects."""
