package gcedriver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// startTime is how long a program may take to serve, on a busy machine.
const startTime = time.Minute

// testbed is gce-mock, the driver, and the metadata server of the node it runs on.
type testbed struct {
	*testing.T
	subject                subject
	programs, folder, logs string
	// cloud and metadata are where these are served.
	cloud, metadata string
	// driver is the present run of the driver.
	driver *process
}

// newTestbed is one with its programs from a folder. Logs have a folder of this name.
func newTestbed(t *testing.T, name string, of subject) *testbed {
	t.Helper()
	programs := os.Getenv(programsVariable)
	if programs == "" {
		t.Skip("make test-gce-mock runs this")
	}
	logs, err := filepath.Abs(filepath.Join(programs, "test", "gcedriver", name))
	if err == nil {
		err = os.MkdirAll(logs, 0o750)
	}
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "gce") //nolint:usetesting // t.TempDir has the test's name in it, and is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	b := &testbed{T: t, programs: programs, folder: folder, logs: logs, subject: of}
	b.startCloud()
	b.startMetadata()
	b.startDriver()
	return b
}

func (b *testbed) path(name string) string { return filepath.Join(b.folder, name) }

func (b *testbed) endpoint() string { return "unix:" + b.path("csi.sock") }

// process is a program that runs.
type process struct {
	// line is its first line of log.
	line string
	// kill ends it as a crash does, and waits until it is gone.
	kill func()
}

// start runs a program until it is killed, or the test ends. The runs of a program share a log.
func (b *testbed) start(command *exec.Cmd) *process {
	b.Helper()
	log, err := os.OpenFile(filepath.Join(b.logs, filepath.Base(command.Path)+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	output, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	first, copied := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(copied)
		lines := bufio.NewReader(output)
		text, _ := lines.ReadString('\n') // a program that fails says nothing
		first <- text
		_, _ = log.WriteString(text)
		_, _ = lines.WriteTo(log)
	}()
	kill := sync.OnceFunc(func() {
		_ = command.Process.Kill() // it may have ended
		<-copied
		_ = command.Wait()
		_ = log.Close()
	})
	b.Cleanup(kill)
	return &process{line: <-first, kill: kill}
}

// startCloud runs gce-mock with two instances: the node, and another one.
func (b *testbed) startCloud() {
	b.Helper()
	run := b.start(exec.CommandContext(b.Context(), filepath.Join(b.programs, "gce-mock"),
		"--folder", b.path("cloud"), "--listen=127.0.0.1:0", "--tls-self-signed", b.path("cloud.crt"), "--latency=20ms",
		"--project", project, "--zone", zone+","+other, "--instance", zone+"/"+node+":"+machineType, "--instance", zone+"/"+otherNode+":"+machineType, "--log-level=1"))
	var said struct{ Endpoint string }
	if err := json.Unmarshal([]byte(run.line), &said); err != nil {
		b.Fatalf("gce-mock said %q: %v", run.line, err)
	}
	served, err := url.Parse(said.Endpoint)
	if err != nil {
		b.Fatal(err)
	}
	b.cloud = served.Scheme + "://" + served.Host
}

// startMetadata serves what the driver asks of the metadata server of its node.
func (b *testbed) startMetadata() {
	values := map[string]string{
		"instance/zone":         "projects/1/zones/" + zone,
		"instance/name":         node,
		"instance/machine-type": "projects/1/machineTypes/" + machineType,
		"project/project-id":    project,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		value, known := values[strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")]
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(value)) // a client that went away hears nothing
	}))
	b.Cleanup(server.Close)
	b.metadata = strings.TrimPrefix(server.URL, "http://")
}

// startDriver runs Google's driver, and waits until it serves. It can be called again once the
// driver was killed.
func (b *testbed) startDriver() {
	b.Helper()
	b.write("cloud.conf", "[global]\nproject-id = "+project+"\nzone = "+zone+"\n")
	b.write("key.json", string(serviceAccountKey(b.T, b.cloud+"/token")))
	driver := exec.CommandContext(b.Context(), filepath.Join(b.programs, "gce-pd-csi-driver"), "--v=5",
		"--endpoint="+b.endpoint(), "--cloud-config="+b.path("cloud.conf"), "--compute-endpoint="+b.cloud,
		"--extra-labels=suite=sanity", "--supports-dynamic-iops-provisioning=hyperdisk-balanced",
		"--supports-dynamic-throughput-provisioning=hyperdisk-balanced",
		// csi-sanity asks for the zone of the node alone, and a regional disk is in two.
		"--fallback-requisite-zones="+zone+","+other,
		// csi-sanity calls again at once after a call that was to fail.
		"--backoff-initial-duration-ms=0")
	driver.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.folder, "SSL_CERT_FILE=" + b.path("cloud.crt"),
		"GCE_METADATA_HOST=" + b.metadata, "GOOGLE_APPLICATION_CREDENTIALS=" + b.path("key.json"),
	}
	b.driver = b.start(driver)
	b.awaitDriver()
}

func (b *testbed) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *testbed) awaitDriver() {
	b.Helper()
	conn, err := grpc.NewClient(b.endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(b.Context(), startTime)
	defer cancel()
	if _, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		b.Fatalf("the driver does not serve: %v; its log is in %s", err, b.logs)
	}
}
