package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

// nfsServer is a server in this process, behind a proxy that can be away.
type nfsServer struct {
	*nfstest.Server
	proxy *nfstest.Proxy
	// share is the folder that is exported; the canary lies beside it.
	share, canary string
}

// nfsShare: the manager makes volumes on an NFS server, without a mount.
func nfsShare(s *scenario) {
	server := s.startServer()
	defer server.proxy.Close()
	defer server.Close()
	s.say("A server in this process exports a folder. The manager works on it by a client of its own, and mounts nothing;\n" +
		"no pod mounts it here either: `make e2e-nfs` does that, with kernels of its own.")
	s.apply("share.yaml", values{
		"SHARE": nfstest.Share, "PORT": strconv.Itoa(server.proxy.Port()), "UID": strconv.Itoa(os.Getuid()), "GID": strconv.Itoa(os.Getgid()),
	})
	s.check("the StorageBackend is Ready", "storagebackend/shared", s.backendIs("shared", metav1.ConditionTrue, ""))
	s.removeShared(server)
	s.archiveShared(server)
	s.check("beside the share nothing was touched", "storagebackend/shared", s.greets(server.canary))
	s.kubectl("delete", "storagebackend/shared", "--wait=false")
	s.check("the StorageBackend can be deleted", "storagebackend/shared", s.isGone("shared", &stowagev1alpha1.StorageBackend{}))
}

// removeShared: a claim's directory comes, grows and goes with it.
func (s *scenario) removeShared(server *nfsServer) {
	s.apply("claim.yaml", values{"NAME": "inbox", "CLASS": "shared", "SIZE": "1Gi"})
	directory, volume := s.sharedDirectory("inbox", server)
	s.check("the claim is Bound", "pvc/inbox", s.claimIsBound("inbox", volume))
	s.check("its directory is on the share", "pvc/inbox", s.exists(directory, true))
	s.kubectl("patch", "pvc/inbox", "--type=merge", "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	s.check("it grows: a directory's size is a label", "pvc/inbox", s.claimHas("inbox", "3Gi"))
	s.write(directory)
	s.deleteClaim("inbox")
	s.check("its directory is gone with it", "pv/"+volume, s.exists(directory, false))
}

// archiveShared: a claim is deleted while the server is away, and what it wrote kept.
func (s *scenario) archiveShared(server *nfsServer) {
	var said string
	s.apply("claim.yaml", values{"NAME": "ledger", "CLASS": "shared", "SIZE": "1Gi"})
	directory, volume := s.sharedDirectory("ledger", server)
	s.check("another claim is Bound", "pvc/ledger", s.claimIsBound("ledger", volume))
	s.write(directory)
	s.say("The server stops. (It is probed every minute, and whenever its StorageBackend changes.)")
	server.proxy.Plan(func(nfstest.Call) nfstest.Fault { return nfstest.DropCall })
	s.kubectl("patch", "storagebackend/shared", "--type=merge", "-p", `{"spec":{"nfs":{"onDelete":"Archive"}}}`)
	s.check("the StorageBackend is not Reachable, and says why", "storagebackend/shared", s.reachable("shared", metav1.ConditionFalse, &said))
	s.quote(said)
	s.kubectl("delete", "pvc/ledger", "--wait=false")
	s.check("a claim that is deleted now leaves its volume", "pv/"+volume, s.volumeIs(volume, corev1.VolumeReleased))
	s.say("The server is back.")
	server.proxy.Plan(nil)
	s.kubectl("patch", "storagebackend/shared", "--type=merge", "-p", `{"spec":{"maxConcurrentOperations":8}}`)
	s.check("the StorageBackend is Reachable", "storagebackend/shared", s.reachable("shared", metav1.ConditionTrue, &said))
	s.check("the volume is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.check("its directory is gone", "pv/"+volume, s.exists(directory, false))
	archive := filepath.Join(server.share, ".stowage", "archived", "default_ledger_"+volume)
	s.check("its data is in the archive", "storagebackend/shared", s.greets(archive))
}

func (s *scenario) startServer() *nfsServer {
	top := filepath.Join(s.cluster.Folder.Root(), "nfs")
	server := &nfsServer{share: filepath.Join(top, "share"), canary: filepath.Join(top, "canary")}
	s.do(func() (err error) {
		err = errors.Join(os.MkdirAll(server.share, 0o755), os.Mkdir(server.canary, 0o755))
		if err == nil {
			err = os.WriteFile(filepath.Join(server.canary, greetingFile), []byte(greeting+"\n"), 0o600)
		}
		if err == nil {
			server.Server, err = nfstest.Serve(server.share)
		}
		if err == nil {
			server.proxy, err = nfstest.NewProxy(server.Port())
		}
		return err
	})
	return server
}

// sharedDirectory is where a claim's volume lies on the share, and the volume's name.
func (s *scenario) sharedDirectory(claim string, server *nfsServer) (directory, volume string) {
	uid := string(s.claim(claim).UID)
	return filepath.Join(server.share, corev1.NamespaceDefault, claim+"-"+uid), "pvc-" + uid
}

// claimHas holds if a claim has a capacity.
func (s *scenario) claimHas(name, size string) condition {
	return func() error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := s.get(name, claim); err != nil {
			return err
		}
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.Cmp(resource.MustParse(size)) != 0 {
			return fmt.Errorf("claim %s has %s", name, has.String())
		}
		return nil
	}
}

// reachable holds if a backend's condition Reachable has a status; what it says is
// kept in said.
func (s *scenario) reachable(name string, want metav1.ConditionStatus, said *string) condition {
	return func() error {
		backend := &stowagev1alpha1.StorageBackend{}
		if err := s.get(name, backend); err != nil {
			return err
		}
		found := meta.FindStatusCondition(backend.Status.Conditions, stowagev1alpha1.ReachableCondition)
		if found == nil || found.Status != want {
			return fmt.Errorf("Reachable is %v", found)
		}
		*said = fmt.Sprintf("%s: %s", found.Reason, found.Message)
		return nil
	}
}
