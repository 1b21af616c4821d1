package deploy

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// compile builds a program of this repository.
func compile(t *testing.T, dir, program string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), testdep.LookPath(t, "go"), "build", "-o", to, program)
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=") // that of the checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return to
}

// systemd takes the units, and finds little to say against how far they are shut
// in.
func TestUnits(t *testing.T) {
	analyze, dir := testdep.LookPath(t, "systemd-analyze"), t.TempDir()
	unit := replace(t, read(t, "../../examples/deploy/systemd/mcp.service"), "/usr/local/bin/mcp", compile(t, "../..", "./examples/service"))
	service := write(t, dir, "mcp.service", unit)
	socket := write(t, dir, "mcp.socket", read(t, "../../examples/deploy/systemd/mcp.socket"))
	for _, args := range [][]string{
		{"verify", "--man=no", service, socket},
		{"security", "--offline=true", "--threshold=20", "--no-pager", service},
	} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// The command of the Dockerfile makes a static program, of a server with modules of
// its own.
func TestDockerfile(t *testing.T) {
	file := read(t, "../../examples/deploy/Dockerfile")
	for _, line := range []string{"USER 65532:65532", "COPY . .", "COPY --from=build /mcp /mcp", `ENTRYPOINT ["/mcp"]`} {
		if !strings.Contains(file, "\n"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	command := regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(file, -1)
	if len(command) != 1 {
		t.Fatalf("found the commands %q", command)
	}
	program := filepath.Join(t.TempDir(), "mcp")
	build := exec.CommandContext(t.Context(), testdep.LookPath(t, "sh"), "-c", replace(t, command[0][1], " /mcp ", " "+program+" "))
	build.Dir, build.Env = "../..", append(os.Environ(), "GOWORK=", "PROGRAM=./scale/redis/example")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	binary, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the program needs a loader")
	}
	help := exec.CommandContext(t.Context(), program, "-acl")
	help.Env = []string{}
	if out, err := help.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("~{talaria:shop:*")) {
		t.Errorf("the program: %v\n%s", err, out)
	}
}

// The manifests are those of Kubernetes' own types, without a member that these do
// not know, and fit each other and the program.
func TestManifests(t *testing.T) {
	var deployment appsv1.Deployment
	var service corev1.Service
	var budget policyv1.PodDisruptionBudget
	var scaler autoscalingv2.HorizontalPodAutoscaler
	var network networkingv1.NetworkPolicy
	parts := strings.Split(read(t, "../../examples/deploy/kubernetes/mcp.yaml"), "\n---\n")
	into := []any{&deployment, &service, &budget, &scaler, &network}
	if len(parts) != len(into) {
		t.Fatalf("there are %d manifests", len(parts))
	}
	for i, part := range parts {
		if err := yaml.UnmarshalStrict([]byte(part), into[i]); err != nil {
			t.Errorf("%v:\n%s", err, part)
		}
	}

	pod := deployment.Spec.Template
	labels := pod.Labels
	for name, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector,
		"PodDisruptionBudget": budget.Spec.Selector.MatchLabels, "NetworkPolicy": network.Spec.PodSelector.MatchLabels,
	} {
		if len(selector) == 0 || labels["app"] != selector["app"] {
			t.Errorf("%s selects %v, pods have %v", name, selector, labels)
		}
	}
	if target := scaler.Spec.ScaleTargetRef; target.Name != deployment.Name || target.Kind != deployment.Kind {
		t.Errorf("%v is scaled", target)
	}
	container := pod.Spec.Containers[0]
	for name, probe := range map[string]*corev1.Probe{"/readyz": container.ReadinessProbe, "/livez": container.LivenessProbe} {
		if probe.HTTPGet.Path != name || probe.HTTPGet.Port.String() != "http" || service.Spec.Ports[0].TargetPort.String() != "http" {
			t.Errorf("%s is looked for at %v", name, probe.HTTPGet)
		}
	}
	if *pod.Spec.TerminationGracePeriodSeconds != 30 || !strings.Contains(strings.Join(container.Args, " "), "-grace 27s") {
		t.Errorf("%d s, and %v", *pod.Spec.TerminationGracePeriodSeconds, container.Args)
	}
	// The program knows its arguments.
	help := exec.CommandContext(t.Context(), compile(t, "../../scale/redis", "./example"), append(slices.Clone(container.Args), "-acl")...)
	if out, err := help.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", container.Args, err, out)
	}
	memory := container.Resources.Limits.Memory().Value()
	if limit := container.Env[0]; limit.Name != "GOMEMLIMIT" || limit.Value != "460MiB" || memory*9/10>>20 != 460 {
		t.Errorf("%v of %d", limit, memory)
	}
}
