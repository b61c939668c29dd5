package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/internal/gcemock"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
)

const about = `gce-mock serves Google's Compute API for disks, instances, attachments, snapshots, images and
operations, to any client of that API. Paths of v1, beta and alpha are served alike, as v1. What exists is kept in one folder.

Examples:
  # A project with two zones and a node in one of them; devices are loop devices.
  gce-mock --folder /tmp/cloud --project demo --zone europe-west3-a,europe-west3-b \
    --instance europe-west3-a/node-1 --attach loop
  # The same in User Mode Linux guests that were started with uml_dir=/run/guests/ umid=<instance>.
  gce-mock --folder /tmp/cloud --project demo --instance europe-west3-a/n1 --attach uml --uml-dir /run/guests
  # Operations take 5 s; the next two attachments are refused; one insert in ten loses its answer.
  gce-mock --folder /tmp/cloud --latency 5s \
    --fault '{"method":"instances.attachDisk","count":2,"status":503,"retryAfter":"1s"}' \
    --fault '{"method":"disks.insert","rate":0.1,"lost":true}'

  curl http://127.0.0.1:8585/compute/v1/projects/demo/zones/europe-west3-a/disks
  # While it runs: an operation that ends in error, one that hangs, and all faults removed.
  curl -d '{"method":"disks.insert","count":1,"operation":"QUOTA_EXCEEDED"}' http://127.0.0.1:8585/_mock/faults
  curl -d '{"method":"instances.detachDisk","count":1,"stuck":true}' http://127.0.0.1:8585/_mock/faults
  curl -X DELETE http://127.0.0.1:8585/_mock/faults
  curl -X PUT -d '{"operation":"10s","answer":"200ms"}' http://127.0.0.1:8585/_mock/latency`

type options struct {
	listen, folder         string
	projects, zones        []string
	instances, faults      []string
	latency                time.Duration
	quotaGb                int64
	tokenFile              string
	tlsCertificate, tlsKey string
	tlsSelfSigned          string
	attach, deviceFolder   string
	umlDir                 string
	logLevel               int
}

// parse reads the command line; --help prints and exits.
func parse(arguments []string) (options, error) {
	flags := pflag.NewFlagSet("gce-mock", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "%s\n\nUsage:\n  gce-mock [flags]\n\nFlags:\n%s", about, flags.FlagUsagesWrapped(100))
	}
	o := options{}
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8585", "Address to serve on, as host:port; port 0 for any that is free.")
	flags.StringVar(&o.folder, "folder", "", "Folder that keeps all that exists. Required.")
	flags.StringSliceVar(&o.projects, "project", []string{"demo"}, "Projects that there are.")
	flags.StringSliceVar(&o.zones, "zone", []string{"europe-west3-a", "europe-west3-b"}, "Zones that there are.")
	flags.StringArrayVar(&o.instances, "instance", nil,
		"Instance of the first project that is there from the start, as zone/name or zone/name:machine-type. Repeatable.")
	flags.DurationVar(&o.latency, "latency", time.Second, "How long an operation takes.")
	flags.Int64Var(&o.quotaGb, "quota-gb", 0, "Limit of the size of all disks of a project in a region; 0 for none.")
	flags.StringArrayVar(&o.faults, "fault", nil, "Fault to begin with, as JSON. Repeatable; see the examples.")
	flags.StringVar(&o.tokenFile, "token-file", "", "File with the bearer token that calls must carry. Default: any, or none.")
	flags.StringVar(&o.tlsCertificate, "tls-cert", "", "Certificate file to serve HTTPS with. Default: HTTP.")
	flags.StringVar(&o.tlsKey, "tls-key", "", "Key file of the certificate.")
	flags.StringVar(&o.tlsSelfSigned, "tls-self-signed", "",
		"File to write a new certificate to, which HTTPS is served with on loopback. Clients trust it with SSL_CERT_FILE.")
	flags.StringVar(&o.attach, "attach", "none",
		"What attaching does: none, loop (a loop device of this machine appears; needs root) or\n"+
			"uml (a disk appears in the User Mode Linux guest whose umid is the instance's name).")
	flags.StringVar(&o.deviceFolder, "device-folder", "",
		"Folder in which each instance finds its devices, in <project>/<zone>/<instance>. Default: devices in --folder.")
	flags.StringVar(&o.umlDir, "uml-dir", "", "Folder in which guests were started: their uml_dir. Required for uml.")
	flags.IntVar(&o.logLevel, "log-level", 0, "How much to log: 0 for operations that end in error, 1 for each call.")
	err := flags.Parse(arguments)
	if errors.Is(err, pflag.ErrHelp) {
		os.Exit(0)
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return o, fmt.Errorf("%w: see gce-mock --help", err)
	}
	return o, nil
}

func (o options) check() error {
	switch {
	case o.folder == "":
		return errors.New("--folder is required")
	case len(o.projects) == 0 || len(o.zones) == 0:
		return errors.New("there is at least one --project and one --zone")
	case (o.tlsCertificate == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case o.tlsCertificate != "" && o.tlsSelfSigned != "":
		return errors.New("--tls-self-signed goes without --tls-cert")
	case o.attach == "uml" && o.umlDir == "":
		return errors.New("--attach=uml needs --uml-dir")
	}
	return nil
}

func (o options) scheme() string {
	if o.tlsCertificate != "" || o.tlsSelfSigned != "" {
		return "https"
	}
	return "http"
}

// cloud opens the cloud that was asked for.
func (o options) cloud(ctx context.Context, log logr.Logger) (*gcemock.Server, error) {
	folder, err := filepath.Abs(o.folder)
	if err != nil {
		return nil, err
	}
	attacher, err := o.attacher(folder)
	if err != nil {
		return nil, err
	}
	token := ""
	if o.tokenFile != "" {
		text, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, err
		}
		if token = strings.TrimSpace(string(text)); token == "" {
			return nil, fmt.Errorf("--token-file: %s is empty", o.tokenFile)
		}
	}
	return gcemock.New(ctx, gcemock.Options{
		Folder: folder, Projects: o.projects, Zones: o.zones, Latency: o.latency, QuotaGb: o.quotaGb,
		Token: token, Attacher: attacher, Log: log,
	})
}

func (o options) attacher(folder string) (hotplug.Attacher, error) {
	devices := o.deviceFolder
	if devices == "" {
		devices = filepath.Join(folder, "devices")
	}
	devices, err := filepath.Abs(devices)
	if err != nil {
		return nil, err
	}
	switch o.attach {
	case "none":
		return hotplug.None{}, nil
	case "loop":
		return hotplug.NewLoop(hotplug.Folder(devices)), nil
	case "uml":
		return hotplug.Guests{Sockets: o.umlDir, Folder: hotplug.Folder(devices)}, nil
	default:
		return nil, fmt.Errorf("--attach is none, loop or uml, not %q", o.attach)
	}
}
