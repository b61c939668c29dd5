package apiserver_test

import (
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

func TestAStartedServerAnswersAndStops(t *testing.T) {
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := kubernetes.NewForConfigOrDie(server.Config).Discovery().ServerVersion()
	if err != nil {
		t.Errorf("asking the server's version: %v", err)
	} else if version.Major != "1" {
		t.Errorf("the server says it is version %q", version)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
}
