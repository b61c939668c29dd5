package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/fixture"
)

// share: pods on two nodes write to one directory of an NFS server, and read what the
// other wrote.
func share(s *scene) {
	claim := s.claim(shared, "1Gi", fixture.AskingModes(corev1.ReadWriteMany))
	one, two := s.pod("one", on(node1), with(data)), s.pod("two", on(node2), with(data))
	s.Do("a pod on each guest has the claim", func() error { return s.launch(claim, one, two) })
	s.Do("each writes", func() error {
		return errors.Join(s.does(one.Name, "echo from one >/data/one && sync"), s.does(two.Name, "echo from two >/data/two && sync"))
	})
	s.Soon("each reads what the other wrote", func() error {
		return errors.Join(s.says(one.Name, "cat /data/two", "from two"), s.says(two.Name, "cat /data/one", "from one"))
	})
	s.Do("one goes, and the other one reads and writes on", func() error {
		return errors.Join(s.remove(one), s.says(two.Name, "cat /data/one && echo more >>/data/two", "from one"))
	})
}
