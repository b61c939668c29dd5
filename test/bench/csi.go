package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	sidecarsName = "sidecars"

	// unlimitedRequests is a limit of Kubernetes' own programs that limits nothing here.
	unlimitedRequests = "10000"
	// volumeControllers are those that bind volumes, and that let claims and volumes go.
	volumeControllers = "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"
)

// csiBed is CSI drivers with volumes in memory. Each has a StorageBackend and a class of its name.
type csiBed struct {
	provisioning
	drivers []mockDriver
	// known are the volumes that the drivers had before a round.
	known int
}

type mockDriver struct{ name, socket string }

// measureCSI has a CSI driver make volumes for the manager, and for external-provisioner beside
// kube-controller-manager, in turn. Then one driver and several make the same number of volumes
// for the manager. Other programs know no drivers.
func (b *testbed) measureCSI() error {
	if b.options.vs != "" {
		fmt.Fprintln(b.report.out, "\nCSI drivers: measured of the manager only")
		return nil
	}
	sidecars, err := b.sidecars()
	if err != nil {
		return err
	}
	b.report.begin("csi")
	beds := []*csiBed{b.csiBed(1), b.csiBed(b.options.csiDrivers)}
	if err := beds[0].whileDriversRun(func() error { return beds[0].compare(sidecars) }); err != nil {
		return err
	}
	beds[1].spent = beds[0].spent
	for _, bed := range beds {
		n := b.options.csiDrivers * b.options.csiEach
		if err := bed.whileDriversRun(func() error { return bed.round(n, b.subject()) }); err != nil {
			return fmt.Errorf("%d drivers: %w", len(bed.drivers), err)
		}
	}
	return nil
}

func (b *testbed) csiBed(drivers int) *csiBed {
	bed := &csiBed{}
	bed.provisioning = provisioning{
		testbed: b, benchmark: "csi", of: fmt.Sprint(drivers), size: workloads[0].size(0),
		// The manager and kube-controller-manager write to a claim before the driver is called.
		began: func(seen *bound) time.Time { return seen.touched },
		held:  bed.held, tidy: bed.learnVolumes,
	}
	for i := range drivers {
		name := fmt.Sprintf("%s-%d.example.com", class, i)
		bed.drivers = append(bed.drivers, mockDriver{name: name, socket: filepath.Join(b.dir, name+".sock")})
		bed.classes = append(bed.classes, name)
	}
	return bed
}

// compare has the manager and the sidecars take turns. The sidecars reach the first driver only.
func (c *csiBed) compare(sidecars []contender) error {
	cost := map[string]time.Duration{}
	subjects := map[string][]contender{managerName: {c.subject()}, sidecarsName: sidecars}
	for name, programs := range subjects {
		var err error
		if cost[name], err = c.startCost(programs...); err != nil {
			return err
		}
	}
	defer func() { c.spent = cost[managerName] }()
	return takeTurns(c.options.rounds, func(one contender) error {
		c.spent = cost[one.name]
		return c.round(c.options.csiClaims, subjects[one.name]...)
	}, contender{name: managerName}, contender{name: sidecarsName})
}

// sidecars are external-provisioner with the first driver, and kube-controller-manager, with the
// controllers of volumes alone, by whose first write the clock starts.
func (b *testbed) sidecars() ([]contender, error) {
	controllers, err := apiserver.Binary("kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return []contender{
		{name: "csi-provisioner", command: []string{
			built("csi-provisioner"), "--kubeconfig=" + b.kubeconfig, "--csi-address=" + b.csiBed(1).drivers[0].socket,
			"--kube-api-qps=" + unlimitedRequests, "--kube-api-burst=" + unlimitedRequests,
		}},
		{name: sidecarsName, command: []string{
			controllers, "--kubeconfig=" + b.kubeconfig, "--controllers=" + volumeControllers, "--leader-elect=false",
			"--secure-port=0", "--kube-api-qps=" + unlimitedRequests, "--kube-api-burst=" + unlimitedRequests,
		}},
	}, nil
}

func built(name string) string { return filepath.Join(apiserver.Repository(), "bin", name) }

// whileDriversRun does something while the drivers run, and the manager has accepted them.
func (c *csiBed) whileDriversRun(do func() error) (err error) {
	programs := make([]contender, 0, len(c.drivers))
	for _, driver := range c.drivers {
		programs = append(programs, contender{name: driver.name, command: []string{
			built("csi-mock-driver"), "--socket=" + driver.socket, "--driver-name=" + driver.name, "--topology=false",
		}})
	}
	running, err := c.start(programs...)
	if err != nil {
		return err
	}
	defer func() {
		running.stop()
		err = errors.Join(err, c.eachDriver(c.remove), c.removeSockets())
	}()
	create := func(object client.Object) error { return c.client.Create(c.ctx, object) }
	if err := c.eachDriver(create); err != nil {
		return err
	}
	if err := c.awaitAccepted(running); err != nil {
		return err
	}
	if err := c.learnVolumes(); err != nil {
		return err
	}
	return do()
}

// removeSockets removes what keeps a driver of the same name from being started again.
func (c *csiBed) removeSockets() (err error) {
	for _, driver := range c.drivers {
		if removeErr := os.Remove(driver.socket); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// eachDriver does something with each object of each driver.
func (c *csiBed) eachDriver(do func(client.Object) error) error {
	for _, driver := range c.drivers {
		csiDriver := &storagev1.CSIDriver{}
		csiDriver.Name, csiDriver.Spec.AttachRequired = driver.name, new(false)
		backend := &stowagev1alpha1.StorageBackend{}
		backend.Name = driver.name
		backend.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: driver.name, Endpoint: "unix://" + driver.socket}
		for _, object := range []client.Object{csiDriver, fixture.Class(driver.name, driver.name, nil), backend} {
			if err := do(object); err != nil {
				return fmt.Errorf("driver %s: %w", driver.name, err)
			}
		}
	}
	return nil
}

// awaitAccepted runs the manager until it has accepted each driver.
func (c *csiBed) awaitAccepted(drivers processes) error {
	manager, err := c.start(c.subject())
	if err != nil {
		return err
	}
	defer manager.stop()
	err = wait.PollUntilContextTimeout(c.ctx, poll, backendTimeout, true, func(ctx context.Context) (bool, error) {
		backends := &stowagev1alpha1.StorageBackendList{}
		err := errors.Join(drivers.alive(), manager.alive(), c.client.List(ctx, backends))
		ready := 0
		for i := range backends.Items {
			if meta.IsStatusConditionTrue(backends.Items[i].Status.Conditions, stowagev1alpha1.ReadyCondition) {
				ready++
			}
		}
		return ready == len(c.drivers), err
	})
	if err != nil {
		return fmt.Errorf("waiting for %d StorageBackends to be Ready: %w", len(c.drivers), err)
	}
	return nil
}

// learnVolumes counts the volumes that the next round finds: what an earlier one left isn't its own.
func (c *csiBed) learnVolumes() (err error) {
	c.known, err = c.volumes()
	return err
}

// held counts the volumes that a round made and didn't remove.
func (c *csiBed) held() (int, error) {
	now, err := c.volumes()
	return now - c.known, err
}

// volumes counts those that the drivers have.
func (c *csiBed) volumes() (count int, err error) {
	for _, driver := range c.drivers {
		connection, err := grpc.NewClient("unix://"+driver.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return 0, err
		}
		answer, err := csi.NewControllerClient(connection).ListVolumes(c.ctx, &csi.ListVolumesRequest{})
		if err = errors.Join(err, connection.Close()); err != nil {
			return 0, fmt.Errorf("listing the volumes of driver %s: %w", driver.name, err)
		}
		count += len(answer.GetEntries())
	}
	return count, nil
}
