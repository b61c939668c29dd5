// Package imports has no code of its own: it keeps in this module what upstream's
// tests import, which are generated when they are built, and never committed.
package imports

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	_ "k8s.io/kubernetes/pkg/controller/podgc"
	_ "k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	_ "k8s.io/kubernetes/pkg/controller/volume/persistentvolume/options"
	_ "k8s.io/kubernetes/pkg/volume/testing"
	_ "k8s.io/kubernetes/test/integration/framework"
	_ "k8s.io/kubernetes/test/integration/util"
	_ "k8s.io/kubernetes/test/utils/image"
	_ "k8s.io/kubernetes/test/utils/ktesting"
)
