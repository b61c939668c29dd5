package main

import "errors"

// image: a file on a node's disk, with a file system in it, is a limit.
func image(s *scene) {
	claim := s.claim(images, "64Mi")
	writer := s.pod("writer", on(machine), with(data))
	s.Do("a pod runs with a claim for 64Mi", func() error { return s.launch(claim, writer) })
	s.Do("it has a file system of about that size", func() error {
		return s.says(writer.Name, "set -- $(df -m /data | tail -1); test $2 -gt 32 -a $2 -le 64 && echo fits", "fits")
	})
	s.Do("it writes what is to stay", func() error {
		return s.does(writer.Name, "dd if=/dev/urandom of=/data/kept bs=1M count=16 && md5sum /data/kept >/data/sum && sync")
	})
	s.Do("it can't write more than there is room for", func() error {
		return s.refuses(writer.Name, "dd if=/dev/zero of=/data/more bs=1M count=128", "No space left on device")
	})
	s.Do("what was there is whole", func() error { return s.does(writer.Name, "md5sum -c /data/sum && rm /data/more") })
	reader := s.pod("reader", with(data))
	s.Do("another pod comes when it has gone", func() error { return errors.Join(s.remove(writer), s.launch(reader)) })
	s.Do("and finds it whole", func() error {
		return errors.Join(isOn(writer.Spec.NodeName, reader), s.does(reader.Name, "md5sum -c /data/sum"))
	})
}
