package cluster_test

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// share: pods on two nodes write to one directory of an NFS server, and read what the
// other wrote.
func share(n *namespace) {
	claim := n.claim(shared, "1Gi", fixture.AskingModes(corev1.ReadWriteMany))
	one, two := n.pod("one", on(node1), with(data)), n.pod("two", on(node2), with(data))
	scenario.Step("a pod on each guest has the claim", func() error { return n.launch(claim, one, two) })
	scenario.Step("each writes", func() error {
		return errors.Join(n.does(one.Name, "echo from one >/data/one && sync"), n.does(two.Name, "echo from two >/data/two && sync"))
	})
	n.Soon("each reads what the other wrote", func() error {
		return errors.Join(n.says(one.Name, "cat /data/two", "from two"), n.says(two.Name, "cat /data/one", "from one"))
	})
	scenario.Step("one goes, and the other one reads and writes on", func() error {
		return errors.Join(n.remove(one), n.says(two.Name, "cat /data/one && echo more >>/data/two", "from one"))
	})
}
