package cluster_test

import (
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// veleroPage is the page of which an administrator types the commands.
const veleroPage = "docs/operate/backup.md"

// commands are the blocks of a section of that page.
func commands(section string, count int) []string {
	blocks, err := kube.BlocksOf(veleroPage, "### "+section, count)
	if err != nil {
		Fail(err.Error())
	}
	return blocks
}

// kept is a namespace that is backed up, with a claim of each class, and a pod, of the classes' names.
type kept struct {
	*namespace
	classes []string
}

// backedUp: the page's commands, as they are typed, bring back what pods wrote to volumes of each kind.
func backedUp(n *namespace) {
	n.serveSnapshots()
	n.installVelero()
	k := &kept{n, []string{directories, images, shared, machineDisks}}
	scenario.Step("a pod of each kind of volume writes", func() error {
		for _, class := range k.classes {
			if err := k.create(k.claim(class, "1Gi", fixture.ClaimNamed(class))); err != nil {
				return err
			}
		}
		return errors.Join(k.launchAll(), k.write("first"))
	})
	k.withSnapshots()
	k.fileByFile()
	k.moved()
	scenario.Step("Velero goes", func() error {
		_, err := k.types("velero uninstall --force")
		return err
	})
}

// withSnapshots backs up and restores with snapshots, which go with the backup.
func (k *kept) withSnapshots() {
	typed := commands("With snapshots", 4)
	scenario.Step("pods of local volumes go, and the namespace is backed up", func() error {
		if err := k.remove(k.podOf(directories), k.podOf(images)); err != nil {
			return err
		}
		_, err := k.completes(typed[0], "snapshots")
		return err
	})
	scenario.Step("there is a snapshot of each volume", func() error { return k.snapshotsAre(len(k.classes)) })
	k.comesBack("snapshots", "first", directories, images)
	scenario.Step("what the restore left goes, and so does the backup", func() error {
		_, err := k.types(typed[2]+"\n"+typed[3], "RESTORE", "snapshots", "BACKUP", "snapshots")
		return err
	})
	k.Soon("no snapshot is left in the storage", func() error { return k.snapshotsAre(0) })
}

// fileByFile backs up and restores the files of pods that run.
func (k *kept) fileByFile() {
	scenario.Step("all write again", func() error { return k.write("second") })
	scenario.Step("Velero backs up what the kubelets mounted for each", func() error {
		output, err := k.completes(commands("File by file", 1)[0], "files")
		for _, class := range k.classes {
			if volume := k.name + "/" + class + ": " + data; !strings.Contains(output, volume) {
				err = errors.Join(err, fmt.Errorf("%s isn't in\n%s", volume, output))
			}
		}
		return errors.Join(err, k.snapshotsAre(0))
	})
	k.comesBack("files", "second")
}

// moved backs up and restores what snapshots have, without these. The node of a mover's pod may have no NFS client here.
func (k *kept) moved() {
	scenario.Step("the share's pod goes, all others write once more, and pods of local volumes go", func() error {
		gone := k.remove(k.podOf(shared), k.claim(shared, "1Gi", fixture.ClaimNamed(shared)))
		k.classes = []string{directories, images, machineDisks}
		return errors.Join(gone, k.write("third"), k.remove(k.podOf(directories), k.podOf(images)))
	})
	scenario.Step("Velero moves a snapshot of each, which goes", func() error {
		_, err := k.completes(commands("Snapshots that are moved", 1)[0], "moved")
		return errors.Join(err, k.soon(func() error { return k.snapshotsAre(0) }))
	})
	k.comesBack("moved", "third", directories, images)
}

// comesBack deletes the namespace, and restores it. At the same time, pods that were not backed up are created again.
func (k *kept) comesBack(backup, written string, absent ...string) {
	scenario.Step("the namespace goes, with its volumes", func() error { return errors.Join(k.clear(), k.gone(k.object())) })
	restore := func() error {
		_, err := k.completes(commands("With snapshots", 4)[1], backup)
		return err
	}
	createPods := func() error {
		return atOnce(absent, func(class string) error {
			return k.soon(func() error { return client.IgnoreAlreadyExists(k.cluster.Client.Create(k.ctx, k.podOf(class))) })
		})
	}
	scenario.Step("it is restored", func() error {
		return atOnce([]func() error{restore, createPods}, func(do func() error) error { return do() })
	})
	scenario.Step("each pod reads what was written", func() error {
		return atOnce(k.classes, func(class string) error {
			return errors.Join(k.soon(func() error { return k.runs(k.podOf(class)) }), k.says(class, "cat /data/folder/link", written+" "+class))
		})
	})
}

// podOf is the pod of a class. The machine's kernel may have no NFS client.
func (k *kept) podOf(class string) *corev1.Pod {
	node := machine
	if class == shared {
		node = node1
	}
	return k.pod(class, on(node), with(class))
}

// launchAll creates the pods, and waits until all run.
func (k *kept) launchAll() error {
	return atOnce(k.classes, func(class string) error { return k.launch(k.podOf(class)) })
}

func (k *kept) write(text string) error {
	return atOnce(k.classes, func(class string) error {
		return k.does(class, "mkdir -p /data/folder && ln -sf ../greeting /data/folder/link && echo "+text+" "+class+" >/data/greeting && sync")
	})
}
