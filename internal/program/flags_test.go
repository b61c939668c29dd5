package program

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
)

// parsed are options as a command line gives them, for a program whose workers can be set for pods.
func parsed(t *testing.T, arguments ...string) (*Options, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	options, flags := &Options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags, 1, 2, "pods")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	err := options.checkWorkers()
	return options, err
}

func TestHowMuchIsLoggedCanBeSetInEachWay(t *testing.T) {
	for arguments, debugs := range map[string]bool{
		"": false, "-v=1": true, "-v 1": true, "--log-level=1": true, "--zap-log-level=debug": true, "--zap-log-level=info -v=1": false, "--zap-devel": true,
	} {
		options, err := parsed(t, strings.Fields(arguments)...)
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		if got := options.Logger().V(1).Enabled(); got != debugs {
			t.Errorf("with %q it logs V(1): %t", arguments, got)
		}
	}
}

func TestAWrongLogLevelSaysWhatIsRight(t *testing.T) {
	for _, wrong := range []string{"--log-level=debug", "-v=-1", "-v="} {
		if _, err := parsed(t, wrong); err == nil || !strings.Contains(err.Error(), "it is a number, such as 1") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestZapsEncoderPrevails(t *testing.T) {
	options, err := parsed(t, "--zap-encoder=console", "--zap-time-encoding=iso8601")
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	options.zap.DestWriter = zapcore.AddSync(&output)
	options.Logger().Info("started")
	if text := output.String(); text == "" || strings.HasPrefix(text, "{") {
		t.Errorf("it logged %q", text)
	}
}

func TestWorkersAreCheckedByName(t *testing.T) {
	if options, err := parsed(t, "--workers=pods=3"); err != nil || options.Workers["pods"] != 3 {
		t.Errorf("%v, %v", options, err)
	}
	for _, wrong := range []string{"--workers=nodes=3", "--workers=pods=0", "--workers=pods"} {
		if _, err := parsed(t, wrong); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestRequestsAreLimitedOnlyOnDemand(t *testing.T) {
	kubeconfig := t.TempDir() + "/kubeconfig"
	const text = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]rest.Config{
		"": {QPS: -1}, "--kube-api-qps=20": {QPS: 20, Burst: 40}, "--kube-api-qps=20 --kube-api-burst=100": {QPS: 20, Burst: 100},
	} {
		options, err := parsed(t, append(strings.Fields(flags), "--kubeconfig="+kubeconfig)...)
		if err != nil {
			t.Fatal(err)
		}
		config, err := options.Config()
		if err != nil || config.QPS != want.QPS || config.Burst != want.Burst {
			t.Errorf("with %q it is %v, %v", flags, config, err)
		}
	}
}

// clientcmd logs "Neither --kubeconfig nor --master was specified" in its place.
func TestWithoutAKubeconfigItIsAPodsServiceAccountOrAnError(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	options, err := parsed(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.Config(); err == nil || strings.Contains(err.Error(), "--") {
		t.Errorf("it says %v", err)
	}
}
