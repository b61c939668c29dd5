package nodemanager_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Projected content", func() {
	var w *world

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
	})

	// start creates a pod and waits until its volumes are there.
	start := func(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
		GinkgoHelper()
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		return pod
	}

	//proves:configMap/shown secret/shown downwardAPI/shown projected/serviceAccountToken
	It("is configMaps, secrets, fields of the pod and tokens", func(ctx context.Context) {
		w.startAgent()
		Expect(admin.Create(ctx, w.configMap("settings", "fast"))).To(Succeed())
		Expect(admin.Create(ctx, w.secret("password", "hush"))).To(Succeed())
		pod := w.withAccount(ctx, w.pod("web", fromConfigMap("settings"), fromSecret("password"), fromLabels("labels"), fromToken("token", "vault")))
		pod.Labels = map[string]string{"color": "blue"}

		start(ctx, pod)

		Expect(w.contentOf(pod, "configmap", "settings")()).To(Equal("fast"))
		Expect(w.contentOf(pod, "secret", "password")()).To(Equal("hush"))
		Expect(w.contentOf(pod, "downward-api", "labels")()).To(Equal("blue"))
		Expect(reviewOf(ctx, w.contentOf(pod, "projected", "token")(), "vault")).To(And(
			HaveField("Authenticated", true),
			HaveField("User.Username", "system:serviceaccount:"+w.namespace+":robot"),
			HaveField("User.Extra", HaveKeyWithValue("authentication.kubernetes.io/pod-uid", ConsistOf(string(pod.UID))))))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.podDirs()).To(BeEmpty())
	})

	//proves:objects/updates
	It("is refreshed when objects and labels change while the pod runs", func(ctx context.Context) {
		w.startAgent()
		settings, password := w.configMap("settings", "fast"), w.secret("password", "hush")
		Expect(admin.Create(ctx, settings)).To(Succeed())
		Expect(admin.Create(ctx, password)).To(Succeed())
		pod := start(ctx, w.pod("web", fromConfigMap("settings"), fromSecret("password"), fromLabels("labels")))

		settings.Data["key"], password.Data["key"] = "slow", []byte("whisper")
		Expect(admin.Update(ctx, settings)).To(Succeed())
		Expect(admin.Update(ctx, password)).To(Succeed())
		colored := pod.DeepCopy()
		colored.Labels = map[string]string{"color": "green"}
		Expect(admin.Patch(ctx, colored, client.MergeFrom(pod))).To(Succeed())

		Eventually(w.contentOf(pod, "configmap", "settings")).Should(Equal("slow"))
		Eventually(w.contentOf(pod, "secret", "password")).Should(Equal("whisper"))
		Eventually(w.contentOf(pod, "downward-api", "labels")).Should(Equal("green"))
	})

	//proves:objects/immutable
	It("is watched once for all pods of the node, and not at all if it is immutable", func(ctx context.Context) {
		asked := w.record()
		w.startAgent()
		fixed := w.configMap("fixed", "for ever")
		fixed.Immutable = new(true)
		Expect(admin.Create(ctx, fixed)).To(Succeed())
		Expect(admin.Create(ctx, w.secret("password", "hush"))).To(Succeed())

		for _, name := range []string{"one", "two", "three"} {
			start(ctx, w.pod(name, fromConfigMap("fixed"), fromSecret("password")))
		}

		Eventually(asked.watches).WithArguments("secrets").Should(Equal(1))
		Consistently(asked.watches).WithArguments("secrets").Should(Equal(1))
		Expect(asked.watches("configmaps")).To(BeZero())
	})

	//proves:objects/optional
	It("may be missing if it is optional, and appears once it exists", func(ctx context.Context) {
		w.startAgent()
		optional := fromConfigMap("settings")
		optional.ConfigMap.Optional = new(true)
		pod := start(ctx, w.pod("web", optional))
		Expect(w.volumeDir(pod, "configmap", "settings")).To(BeADirectory())

		Expect(admin.Create(ctx, w.configMap("settings", "fast"))).To(Succeed())

		Eventually(w.contentOf(pod, "configmap", "settings")).Should(Equal("fast"))
	})

	//proves:objects/optional
	It("is waited for where it is missing, with one event", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", fromSecret("password"))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume password: secret " + w.namespace + "/password"))
		Expect(admin.Create(ctx, w.secret("password", "hush"))).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.contentOf(pod, "secret", "password")()).To(Equal("hush"))
		Eventually(eventsOf(ctx, pod, "FailedMount")).Should(HaveLen(1))
		Eventually(eventsOf(ctx, pod, "SuccessfulMountVolume")).Should(ConsistOf("all volumes are mounted (1)"))
	})

	//proves:objects/deleted
	It("stays though the secret is deleted and the agent restarts, and the pod can be torn down", func(ctx context.Context) {
		stop := w.startAgent()
		password := w.secret("password", "hush")
		Expect(admin.Create(ctx, password)).To(Succeed())
		pod := start(ctx, w.pod("web", fromSecret("password")))
		before := w.mounts()

		Expect(admin.Delete(ctx, password)).To(Succeed())
		Eventually(eventsOf(ctx, pod, "FailedMount")).Should(ConsistOf(HavePrefix("volume password keeps its earlier content: ")))
		Expect(stop()).To(Succeed())
		w.startAgent()

		Consistently(w.contentOf(pod, "secret", "password")).Should(Equal("hush"))
		Expect(w.mounts()).To(Equal(before))
		Expect(volumesReady(ctx, pod)()).To(HavePrefix("True"))
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
	})

	//proves:objects/deleted
	It("stays while the API server can't be reached, and is refreshed afterwards", func(ctx context.Context) {
		line := w.overLine()
		w.startAgent()
		password := w.secret("password", "hush")
		Expect(admin.Create(ctx, password)).To(Succeed())
		pod := start(ctx, w.pod("web", fromSecret("password")))

		line.set(true)
		password.Data["key"] = []byte("whisper")
		Expect(admin.Update(ctx, password)).To(Succeed())

		Consistently(w.contentOf(pod, "secret", "password")).Should(Equal("hush"))
		line.set(false)
		Eventually(w.contentOf(pod, "secret", "password")).Should(Equal("whisper"))
		Expect(volumesReady(ctx, pod)()).To(HavePrefix("True"))
	})

	It("stays though an agent that just started can't read it, and is refreshed once it can", func(ctx context.Context) {
		asked := w.record()
		stop := w.startAgent()
		password := w.secret("password", "hush")
		Expect(admin.Create(ctx, password)).To(Succeed())
		pod := start(ctx, w.pod("web", fromSecret("password")))
		before := w.mounts()
		Expect(stop()).To(Succeed())
		password.Data["key"] = []byte("whisper")
		Expect(admin.Update(ctx, password)).To(Succeed())
		asked.leave("secrets")

		stop = w.startAgent()

		Eventually(eventsOf(ctx, pod, "FailedMount")).Should(ConsistOf(ContainSubstring("reading secret " + w.namespace + "/password: ")))
		Consistently(w.contentOf(pod, "secret", "password")).Should(Equal("hush"))
		Expect(w.mounts()).To(Equal(before))
		Expect(volumesReady(ctx, pod)()).To(HavePrefix("True"))
		Expect(stop()).To(Succeed())
		asked.leave("")
		w.startAgent()
		Eventually(w.contentOf(pod, "secret", "password")).Should(Equal("whisper"))
	})

	It("is read again for a pod that has the name of an older one", func(ctx context.Context) {
		w.startAgent()
		password := w.secret("password", "hush")
		Expect(admin.Create(ctx, password)).To(Succeed())
		old := start(ctx, w.withAccount(ctx, w.pod("web", fromSecret("password"), fromToken("token", ""))))
		token := w.contentOf(old, "projected", "token")()
		password.Data["key"] = []byte("whisper")
		Expect(admin.Update(ctx, password)).To(Succeed())
		Expect(admin.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())

		pod := w.pod("web", fromSecret("password"), fromToken("token", ""))
		pod.Spec.ServiceAccountName = "robot"
		start(ctx, pod)

		Expect(w.contentOf(pod, "secret", "password")()).To(Equal("whisper"))
		Expect(w.contentOf(pod, "projected", "token")()).NotTo(Equal(token))
		Expect(reviewOf(ctx, token)).To(HaveField("Authenticated", false))
	})

	It("has no token of a service account that doesn't exist", func(ctx context.Context) {
		w.startAgent()
		pod := w.pod("web", fromToken("token", ""))
		pod.Spec.ServiceAccountName = "missing"
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("False FailedMount: volume token: serviceAccount " + w.namespace + "/missing is missing"))
	})
})

// reviewOf is the API server's review of a token.
func reviewOf(ctx context.Context, token string, audiences ...string) authenticationv1.TokenReviewStatus {
	GinkgoHelper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	Expect(admin.Create(ctx, review)).To(Succeed())
	return review.Status
}
