// Package program is what every Stowage program has in common: its version, its
// logs, and where it serves metrics and probes.
//
// cmd/ uses it; nothing else does. It reads flags and makes values; it starts
// nothing.
package program

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set at link time by the Makefile.
var version = "unknown"

// noClientLimit leaves it to the API server, which knows the load, to say when there
// are too many requests. A fixed rate would hold up a node whose pods all go at once.
const noClientLimit = -1

// Options are the flags that every program has.
type Options struct {
	// Kubeconfig is a file to reach the API server with. Empty: the pod's own
	// service account.
	Kubeconfig string
	// MetricsAddress is where Prometheus metrics are served; "0" for nowhere.
	MetricsAddress string
	// MetricsSecure serves metrics over TLS, to clients that the API server
	// authenticates and lets read /metrics.
	MetricsSecure bool
	// MetricsCertificates is a folder with tls.crt and tls.key for metrics, which are read again
	// when they change. Empty: a certificate is made at each start.
	MetricsCertificates string
	// ProbeAddress is where /healthz and /readyz are served; "0" for nowhere.
	ProbeAddress string
	// LogLevel is how much is logged: 0 what an operator wants to know, 1 what
	// a developer wants to know, 2 more.
	LogLevel int
	// LogFormat is json or console.
	LogFormat string
	// PprofAddress is where Go's profiles are served; "0" for nowhere.
	PprofAddress string
	// QPS and Burst limit requests to the API server. A negative QPS is no limit.
	QPS   float32
	Burst int
	// Workers is how many objects are reconciled at once, by resource. Those that it lacks have
	// the usual number.
	Workers map[string]int

	zap         ctrlzap.Options
	showVersion bool
	resources   []string
}

// AddFlags adds the flags of every program to a set. The ports keep two
// programs on one machine apart. The resources are those whose workers can be set.
func (o *Options) AddFlags(flags *pflag.FlagSet, metricsPort, probePort int, resources ...string) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"),
		"Kubeconfig file to reach the API server with. Default: $KUBECONFIG, else the pod's service account.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metricsPort),
		"Address to serve Prometheus metrics on, as host:port; 0 for nowhere.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", false,
		"Serve metrics over TLS, to clients that RBAC lets GET /metrics.")
	flags.StringVar(&o.MetricsCertificates, "metrics-cert-dir", "",
		"Folder with tls.crt and tls.key for --metrics-secure. Default: a certificate is made at each start.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", probePort),
		"Address to serve /healthz and /readyz on, as host:port; 0 for nowhere.")
	flags.StringVar(&o.PprofAddress, "pprof-bind-address", "0",
		"Address to serve Go's profiles (/debug/pprof) on, as host:port; 0 for nowhere. It asks for no credentials.")
	flags.Float32Var(&o.QPS, "kube-api-qps", noClientLimit,
		"Requests a second to the API server. Default: no limit but the API server's own.")
	flags.IntVar(&o.Burst, "kube-api-burst", 0, "Requests beyond --kube-api-qps for a moment. Default: twice as many.")
	flags.StringToIntVar(&o.Workers, "workers", nil, fmt.Sprintf(
		"How many objects are reconciled at once, by resource, as RESOURCE=NUMBER,...: %s.", strings.Join(resources, ", ")))
	flags.VarP((*logLevel)(&o.LogLevel), "log-level", "v", "How much to log: 0 for operators, 1 for developers, 2 for more.")
	flags.StringVar(&o.LogFormat, "log-format", "json", "Format of the logs: json or console.")
	zapFlags := flag.NewFlagSet("", flag.ContinueOnError)
	o.zap.BindFlags(zapFlags)
	flags.AddGoFlagSet(zapFlags)
	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
	o.resources = resources
}

// logLevel is the value of --log-level. Many programs have words there.
type logLevel int

func (l *logLevel) String() string { return strconv.Itoa(int(*l)) }

func (l *logLevel) Type() string { return "int" }

func (l *logLevel) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return errors.New("it is a number, such as 1; --zap-log-level takes words, such as debug")
	}
	*l = logLevel(number)
	return nil
}

// Parse reads the command line. It prints and exits where --help or --version
// is asked for or a flag is wrong; about is the paragraph above the flags.
func (o *Options) Parse(flags *pflag.FlagSet, about string, arguments []string) {
	name := filepath.Base(os.Args[0])
	flags.SortFlags = false
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "%s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", about, name, flags.FlagUsagesWrapped(100))
	}
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		os.Exit(0)
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && o.LogFormat != "json" && o.LogFormat != "console":
		err = fmt.Errorf("--log-format is json or console, not %q", o.LogFormat)
	case err == nil:
		err = o.checkWorkers()
	}
	if err != nil {
		Fail(fmt.Errorf("%w: see %s --help", err, name))
	}
	if o.showVersion {
		fmt.Println(name, Version())
		os.Exit(0)
	}
}

func (o *Options) checkWorkers() error {
	for resource, workers := range o.Workers {
		if !slices.Contains(o.resources, resource) {
			return fmt.Errorf("--workers is for %s, not for %q", strings.Join(o.resources, ", "), resource)
		}
		if workers < 1 {
			return fmt.Errorf("--workers is at least 1 for %s, not %d", resource, workers)
		}
	}
	return nil
}

// Fail prints an error for a person and exits with 1.
func Fail(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(1)
}

// Logger makes the program's logger. A flag --zap-… prevails over --log-level and --log-format.
func (o *Options) Logger() logr.Logger {
	options := o.zap
	options.Development = options.Development || o.LogFormat == "console"
	if options.Level == nil && !o.zap.Development {
		options.Level = zapcore.Level(-o.LogLevel)
	}
	if options.StacktraceLevel == nil {
		options.StacktraceLevel = zapcore.PanicLevel
	}
	return lazily(ctrlzap.New(ctrlzap.UseFlagOptions(&options)))
}

// Metrics says how the controller manager is to serve metrics.
func (o *Options) Metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure, CertDir: o.MetricsCertificates}
	if o.MetricsSecure {
		options.FilterProvider = ByOwnToken
	}
	return options
}

// Version is the program's version and that of the Go it was built with.
func Version() string {
	return version + " " + runtime.Version()
}
