package cluster_test

import (
	"errors"

	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// image: a file on a node's disk, with a file system in it, is a limit.
func image(n *namespace) {
	claim := n.claim(images, "64Mi")
	writer := n.pod("writer", on(machine), with(data))
	scenario.Step("a pod runs with a claim for 64Mi", func() error { return n.launch(claim, writer) })
	scenario.Step("it has a file system of about that size", func() error {
		return n.says(writer.Name, "set -- $(df -m /data | tail -1); test $2 -gt 32 -a $2 -le 64 && echo fits", "fits")
	})
	scenario.Step("it writes what is to stay", func() error {
		return n.does(writer.Name, "dd if=/dev/urandom of=/data/kept bs=1M count=16 && md5sum /data/kept >/data/sum && sync")
	})
	scenario.Step("it can't write more than there is room for", func() error {
		return n.refuses(writer.Name, "dd if=/dev/zero of=/data/more bs=1M count=128", "No space left on device")
	})
	scenario.Step("what was there is whole", func() error { return n.does(writer.Name, "md5sum -c /data/sum && rm /data/more") })
	reader := n.pod("reader", with(data))
	scenario.Step("another pod comes when it has gone", func() error { return errors.Join(n.remove(writer), n.launch(reader)) })
	scenario.Step("and finds it whole", func() error {
		return errors.Join(isOn(writer.Spec.NodeName, reader), n.does(reader.Name, "md5sum -c /data/sum"))
	})
}
