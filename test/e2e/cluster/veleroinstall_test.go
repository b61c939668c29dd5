package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/sets"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	harness "github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// objectStore is where a server of S3 listens for Velero's pods, on the machine.
const objectStore = guest.Address + ":9300"

// hasVelero reports whether there are Velero's programs and image, which VELERO=yes builds.
func hasVelero() bool { return os.Getenv("STOWAGE_E2E_VELERO") != "" }

// serveSnapshots installs what Stowage doesn't bring: the CRDs, a class of each driver and, where Stowage doesn't bind
// VolumeSnapshots itself, the stock controller.
func (n *namespace) serveSnapshots() {
	scenario.Step("the cluster serves snapshots", func() error {
		if err := harness.InstallSnapshots(n.ctx, n.cluster.Config); err != nil || n.cluster.Overlay == kube.InsteadOfIt {
			return err
		}
		controller, err := harness.NewSnapshotController(n.cluster.Kubeconfig(), n.cluster.Folder.Log("snapshot-controller"))
		if err != nil {
			return err
		}
		DeferCleanup(controller.Kill)
		return controller.StartReady(n.ctx)
	})
	scenario.Step("each driver has a class of snapshots", func() error {
		return atOnce(snapshotDrivers, func(driver string) error {
			class := &snapshotv1.VolumeSnapshotClass{Driver: driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}
			class.Name = driver
			return n.create(class)
		})
	})
}

var snapshotDrivers = []string{stowagev1alpha1.LocalDriver, stowagev1alpha1.NFSDriver, stowagev1alpha1.GCEDriver}

// installVelero has an administrator install it, with an object store on this machine.
func (n *namespace) installVelero() {
	scenario.Step("all nodes have Velero's image, by the names that it asks for", func() error {
		if err := n.cluster.Load(n.ctx, "velero.tar"); err != nil {
			return err
		}
		return n.cluster.Each(func(node *kubenode.Node) error {
			return errors.Join(node.Tag(n.ctx, veleroImage, "docker.io/velero/velero:v1.18.3"),
				node.Tag(n.ctx, veleroImage, "docker.io/velero/velero-plugin-for-aws:v1.14.3"))
		})
	})
	credentials := filepath.Join(n.cluster.Folder.Memory(), "object-store")
	scenario.Step("an object store runs", func() error {
		server := harness.NewProgram(harness.ProgramOptions{
			Name: "gofakes3", LogFile: n.cluster.Folder.Log("gofakes3"), Ready: "http://" + objectStore,
			Arguments: []string{"-host=" + objectStore, "-backend=memory", "-initialbucket=backups"},
		})
		DeferCleanup(server.Kill)
		secret := os.WriteFile(credentials, []byte("[default]\naws_access_key_id=key\naws_secret_access_key=secret\n"), 0o600)
		return errors.Join(secret, server.StartReady(n.ctx))
	})
	scenario.Step("Velero is installed as the page says, with a class for each driver", func() error {
		typed := commands("Install Velero", 2)
		_, err := n.types(typed[0], "BUCKET", "backups", "CREDENTIALS", credentials, "REGION", "eu", "SERVER", objectStore)
		return errors.Join(err, atOnce(snapshotDrivers, func(driver string) error {
			_, err := n.types(typed[1], "CLASS", driver)
			return err
		}))
	})
}

const veleroImage = "localhost/stowage-velero:e2e"

// types enters commands, with other words in place of the page's, and returns what they print.
func (n *namespace) types(commands string, words ...string) (string, error) {
	return n.cluster.Type(n.ctx, strings.NewReplacer(append(words, "NAMESPACE", n.name)...).Replace(commands))
}

// completes types commands that back up or restore, and checks how that ends.
func (n *namespace) completes(commands, name string) (string, error) {
	output, err := n.types(commands, "BACKUP", name, "RESTORE", name)
	if err == nil && !strings.Contains(output, "completed with status: Completed.") {
		err = errors.New(output)
	}
	return output, err
}

// snapshotsAre reports whether nodes' disks, the share and the cloud have so many snapshots in all.
func (n *namespace) snapshotsAre(count int) error {
	local := &stowagev1alpha1.NodeVolumeList{}
	if err := n.cluster.Client.List(n.ctx, local); err != nil {
		return err
	}
	all := sets.New[string]()
	for _, volume := range local.Items {
		if volume.Spec.SnapshotUID != "" {
			all.Insert(volume.Name)
		}
	}
	onShare, err := os.ReadDir(filepath.Join(n.cluster.Share.Share(), ".stowage", "snapshots"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, entry := range onShare {
		all.Insert(strings.TrimSuffix(entry.Name(), ".json"))
	}
	inCloud, err := n.cluster.MachinesCloud.Snapshots.List(kube.Project).Context(n.ctx).Do()
	if err != nil {
		return err
	}
	for _, snapshot := range inCloud.Items {
		all.Insert(snapshot.Name)
	}
	if all.Len() != count {
		return fmt.Errorf("there are %q, not %d", sets.List(all), count)
	}
	return nil
}
