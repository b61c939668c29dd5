package attach_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// What there is in the cloud.
const (
	project = "demo"
	zone    = "europe-west3-a"
	address = "127.0.0.1:8585"
	// usualLatency is how long an operation takes while all is well.
	usualLatency = 300 * time.Millisecond
)

// cloud is gce-mock, whose instances are the nodes.
type cloud struct {
	*cluster.Program
	*compute.Service
	folder string
	// journals are what the cloud did in its lives that have ended.
	journals []string
}

// machineType is one for persistent disks and for Hyperdisks.
const machineType = "n2-standard-2"

// newCloud starts a cloud that has nothing but an instance for each node.
func newCloud(ctx context.Context, folder guest.Folder, nodes ...string) (*cloud, error) {
	c := &cloud{folder: filepath.Join(folder.Memory(), "cloud")}
	arguments := []string{
		"--folder=" + c.folder, "--project=" + project, "--zone=" + zone + ",europe-west3-b",
		"--attach=uml", "--uml-dir=" + folder.Memory(), "--latency=" + usualLatency.String(), "--log-level=1",
	}
	for _, node := range nodes {
		arguments = append(arguments, "--instance="+zone+"/"+node+":"+machineType)
	}
	c.Program = cluster.NewCloud(address, folder.Log("gce-mock"), arguments...)
	var err error
	c.Service, err = compute.NewService(context.WithoutCancel(ctx), option.WithEndpoint(endpoint), option.WithoutAuthentication())
	if err != nil {
		return nil, err
	}
	err = c.StartReady(ctx)
	return c, err
}

const endpoint = "http://" + address + "/compute/v1/"

// devicesOf is where the machine has what a node can see of its devices.
func (c *cloud) devicesOf(node string) string {
	return filepath.Join(c.folder, "devices", project, zone, node)
}

// kill ends it as a crash does, and keeps its journal, which the next start sums up.
func (c *cloud) kill() error {
	if err := c.Program.Kill(); err != nil {
		return err
	}
	journal, err := c.journal()
	c.journals = append(c.journals, journal)
	return err
}

func (c *cloud) journal() (string, error) {
	content, err := os.ReadFile(filepath.Join(c.folder, "state.jsonl"))
	return string(content), err
}

// fault makes calls of a method go wrong: see gce-mock --help.
func (c *cloud) fault(ctx context.Context, fault string) error {
	return c.configure(ctx, http.MethodPost, "faults", fault)
}

// well takes all faults away.
func (c *cloud) well(ctx context.Context) error {
	return c.configure(ctx, http.MethodDelete, "faults", "")
}

// slow makes operations take so long.
func (c *cloud) slow(ctx context.Context, latency time.Duration) error {
	body, err := json.Marshal(map[string]string{"answer": "0s", "operation": latency.String()})
	if err != nil {
		return err
	}
	return c.configure(ctx, http.MethodPut, "latency", string(body))
}

func (c *cloud) configure(ctx context.Context, method, what, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/_mock/"+what, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("gce-mock answers %s: %s", response.Status, answer)
	}
	return err
}

// attachedTo is the disks that nodes have, the nodes by disk.
func (c *cloud) attachedTo(ctx context.Context) (map[string][]string, error) {
	return cluster.AttachedTo(ctx, c.Service, project, zone)
}

// running reports whether an operation of a type, such as attachDisk, is under way.
func (c *cloud) running(ctx context.Context, kind string) (bool, error) {
	list, err := c.ZoneOperations.List(project, zone).Context(ctx).Do()
	if err != nil {
		return false, err
	}
	for _, operation := range list.Items {
		if operation.OperationType == kind && operation.Status != "DONE" {
			return true, nil
		}
	}
	return false, nil
}
