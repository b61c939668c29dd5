package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

const asProgram = "GCE_MOCK_TEST_RUNS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program, and returns it with a client.
func start(t *testing.T, arguments ...string) (*exec.Cmd, *compute.Service) {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0], append(arguments, "--listen=127.0.0.1:0")...)
	program.Env = append(os.Environ(), asProgram+"=yes")
	output, err := program.StderrPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	var said struct{ Endpoint string }
	if err != nil || json.Unmarshal([]byte(line), &said) != nil || said.Endpoint == "" {
		t.Fatalf("it said %q: %v", line, err)
	}
	service, err := compute.NewService(t.Context(), option.WithEndpoint(said.Endpoint), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	return program, service
}

func TestAKilledProgramGoesOnWhereItWas(t *testing.T) {
	folder := t.TempDir()
	program, service := start(t, "--folder", folder, "--latency=1h", "--instance=europe-west3-a/node-1:e2-micro")
	operation, err := service.Disks.Insert("demo", "europe-west3-a", &compute.Disk{Name: "data", SizeGb: 10}).Do()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed

	_, service = start(t, "--folder", folder, "--latency=10ms")
	ended, err := service.ZoneOperations.Wait("demo", "europe-west3-a", operation.Name).Do()
	if err != nil || ended.Status != "DONE" || ended.Error != nil {
		t.Errorf("the operation is %+v %v", ended, err)
	}
	instance, err := service.Instances.Get("demo", "europe-west3-a", "node-1").Do()
	if err != nil || instance.Status != "RUNNING" || filepath.Base(instance.MachineType) != "e2-micro" {
		t.Errorf("the instance is %+v %v", instance, err)
	}
}

func TestAProgramEndsOnSIGTERM(t *testing.T) {
	program, service := start(t, "--folder", t.TempDir(), "--latency=1h")
	if _, err := service.Disks.Insert("demo", "europe-west3-a", &compute.Disk{Name: "data", SizeGb: 10}).Do(); err != nil {
		t.Fatal(err)
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWrongFlagsAreExplained(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                        "--folder is required",
		"--folder=x --attach=uml": "--attach=uml needs --uml-dir",
		"--folder=x --tls-cert=a": "--tls-cert and --tls-key go together",
		"--folder=x --tls-cert=a --tls-key=b --tls-self-signed=c": "--tls-self-signed goes without",
		"--folder=x y":                   `unexpected argument "y"`,
		"--folder=x --project= --zone=a": "at least one --project",
	} {
		if _, err := parse(strings.Fields(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", arguments, err, want)
		}
	}
	cases := map[string]options{
		"no such attacher": {attach: "scsi"},
		"an empty token":   {attach: "none", tokenFile: os.DevNull},
	}
	for name, wrong := range cases {
		wrong.folder = t.TempDir()
		if cloud, err := wrong.cloud(t.Context(), logr.Discard()); err == nil {
			t.Errorf("%s: there is a cloud: %v", name, cloud.Close())
		}
	}
}

func TestWhatIsThereFromTheStartIsChecked(t *testing.T) {
	set := options{folder: t.TempDir(), attach: "none", projects: []string{"demo"}, zones: []string{"europe-west3-a"}}
	cloud, err := set.cloud(t.Context(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	for _, wrong := range []options{
		{projects: set.projects, instances: []string{"node-1"}},
		{projects: set.projects, instances: []string{"mars-a/node-1"}},
		{projects: set.projects, instances: []string{"europe-west3-a/Node"}},
		{projects: set.projects, faults: []string{`{"method":"disks.insert"}`}},
	} {
		if err := wrong.fill(cloud); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
