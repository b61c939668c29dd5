package gcedriver_test

import (
	"path/filepath"

	"github.com/google/uuid"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
)

const (
	project = "demo"
	zone    = "europe-west3-a"
	other   = "europe-west3-b"
	node    = "node-1"
	// otherNode is an instance on which no driver runs.
	otherNode = "node-2"
	// machineType takes persistent disks and hyperdisks.
	machineType = "c3-standard-4"
	gibibyte    = 1 << 30
)

// subject is a kind of disk.
type subject struct {
	Name string
	// Parameters are those of the StorageClass, and Mutable those of a
	// VolumeAttributesClass. None: the driver cannot change such a disk.
	Parameters, Mutable map[string]string
}

var subjects = []subject{
	{Name: "pd-balanced", Parameters: map[string]string{"type": "pd-balanced"}},
	{
		// With this class, the driver attaches its disks by force.
		Name:       "regional-pd",
		Parameters: map[string]string{"type": "pd-balanced", "replication-type": "regional-pd", "availability-class": "regional-hard-failover"},
	},
	{
		Name: "hyperdisk-balanced",
		Parameters: map[string]string{
			"type": "hyperdisk-balanced", "provisioned-iops-on-create": "3000", "provisioned-throughput-on-create": "150Mi",
		},
		Mutable: map[string]string{"iops": "3013", "throughput": "151Mi"},
	},
}

// plan is what one run of csi-sanity needs.
type plan struct {
	Subject                       subject
	Endpoint, Folder, OutcomeFile string
}

func (p plan) config() sanity.TestConfig {
	config := sanity.NewTestConfig()
	config.Address = p.Endpoint
	config.DialOptions = append(config.DialOptions, grpc.WithUnaryInterceptor(withGoogleNames))
	config.TargetPath, config.StagingPath = filepath.Join(p.Folder, "target"), filepath.Join(p.Folder, "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 200*gibibyte, 210*gibibyte
	config.TestVolumeParameters, config.TestVolumeMutableParameters = p.Subject.Parameters, p.Subject.Mutable
	config.IDGen = ids{}
	return config
}

// ids are ids in the driver's form, of what does not exist.
type ids struct{}

// GenerateUniqueValidVolumeID returns the id of a volume that was never made.
func (ids) GenerateUniqueValidVolumeID() string {
	return "projects/" + project + "/zones/" + zone + "/disks/none-" + uuid.NewString()[:8]
}

// GenerateInvalidVolumeID returns what is no volume's id.
func (ids) GenerateInvalidVolumeID() string { return "no-volume-is-called-this" }

// GenerateUniqueValidNodeID returns the id of a node that does not exist.
func (ids) GenerateUniqueValidNodeID() string {
	return "projects/" + project + "/zones/" + zone + "/instances/none-" + uuid.NewString()[:8]
}

// GenerateInvalidNodeID returns what is no node's id.
func (ids) GenerateInvalidNodeID() string { return "no-node-is-called-this" }
