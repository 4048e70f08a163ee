package qemucmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// TestStandardTemplateIsTheStandardMachine, for every machine and text.
func TestStandardTemplateIsTheStandardMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		want := mustBuild(t, m, h)
		got, err := qemucmd.BuildTemplate(m, h, rapid.SampledFrom([]string{"{{standard}}", "{{without}}\n\n# a comment\n"}).Draw(t, "template"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Args(), got.Args()); diff != "" {
			t.Fatal(diff)
		}
		got.Groups, want.Groups = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTemplatesAreMadeOfGroups: all groups in order are the standard, and what
// one leaves out is what the other has.
func TestTemplatesAreMadeOfGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		left := rapid.SampledFrom(slices.DeleteFunc(qemucmd.GroupNames(), func(n string) bool { return n == "start" || n == "monitor" })).Draw(t, "group")
		var all strings.Builder
		for _, g := range qemucmd.GroupNames() {
			if g != left {
				all.WriteString(`{{group "` + g + `"}}`)
			}
		}
		one, err := qemucmd.BuildTemplate(m, h, all.String())
		if err != nil {
			t.Fatal(err)
		}
		other, err := qemucmd.BuildTemplate(m, h, `{{without "`+left+`"}}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one, other); diff != "" {
			t.Fatal(diff)
		}
		if n := len(mustBuild(t, m, h).Args()); n != len(one.Args())+len(render(mustBuild(t, m, h).Group(left))) {
			t.Fatalf("%d arguments without %s of %d", len(one.Args()), left, n)
		}
	})
}

// TestAnyTextCanBeAnArgument by way of json and opt.
func TestAnyTextCanBeAnArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := small(), qemucmd.GenericHost()
		m.Name = text(1, 20, 80).Draw(t, "name")
		cmd, err := qemucmd.BuildTemplate(m, h, "{{standard}}\n  {{json .Machine.Name}}\n-name\nguest={{opt .Machine.Name}}")
		if err != nil {
			t.Fatal(err)
		}
		args := cmd.Args()
		want := []string{m.Name, "-name", strings.TrimRight("guest="+strings.ReplaceAll(m.Name, ",", ",,"), " ")}
		if diff := cmp.Diff(want, args[len(args)-3:]); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestTemplateAddsAndRemoves(t *testing.T) {
	m := small()
	m.TPM = &qemucmd.TPM{Socket: "/run/tpm.sock", StateDir: "/data"}
	m.Serial = &qemucmd.Socket{Path: "/run/a,b.sock"}
	m.Disks = []qemucmd.Disk{{File: `/data/d"isk`}, {File: "/other"}}
	cmd, err := qemucmd.BuildTemplate(m, qemucmd.GenericHost(), `
# no sound and no TPM, and the disks and the serial port in another way
{{without "tpm" "sound" "disk" "serial"}}
	-chardev
	socket,id=tty,path={{opt .Machine.Serial.Path}},server=on
{{range .Machine.Disks}}{{if ne .File "/other"}}
	-drive
	{{json (print "file=" (opt .File))}}
{{end}}{{end}}
{{if .Host.KVM}}-overcommit
cpu-pm=on{{end}}
"\"\u00e9\n"
`)
	if err != nil {
		t.Fatal(err)
	}
	args := cmd.Args()
	want := []string{"-chardev", "socket,id=tty,path=/run/a,,b.sock,server=on", "-drive", `file=/data/d"isk`, "-overcommit", "cpu-pm=on", "\"é\n"}
	if diff := cmp.Diff(want, args[len(args)-len(want):]); diff != "" {
		t.Error(diff)
	}
	for _, a := range args {
		if strings.Contains(a, "tpm") || strings.Contains(a, "ich9-intel-hda") {
			t.Errorf("%s is still there", a)
		}
	}
	if len(cmd.Helpers) != 0 {
		t.Errorf("helpers: %v", cmd.Helpers)
	}
	wantFiles := []qemucmd.File{{Purpose: "disk", Path: `/data/d"isk`, Writable: true}}
	if diff := cmp.Diff(wantFiles, cmd.Files); diff != "" {
		t.Errorf("files: %s", diff)
	}
	wantSockets := []qemucmd.NamedSocket{{Purpose: "monitor", Socket: m.Monitor}, {Purpose: "serial", Socket: *m.Serial}}
	if diff := cmp.Diff(wantSockets, cmd.Sockets); diff != "" {
		t.Errorf("sockets: %s", diff)
	}
	if !strings.Contains(cmd.Shell(), "\\\n  -overcommit cpu-pm=on '\"é\n'\n") {
		t.Errorf("shell: %s", cmd.Shell())
	}
}

// TestTemplateDevicesComeInTheirOrder: QEMU makes devices in JSON after the others,
// so that a mixture would give a template's devices the standard ones' addresses.
func TestTemplateDevicesComeInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		h.JSONDevice = rapid.Bool().Draw(t, "JSON")
		own := rapid.SampledFrom([]string{"i6300esb", `{"driver":"i6300esb"}`}).Draw(t, "device")
		cmd, err := qemucmd.BuildTemplate(m, h, "{{standard}}\n-device\n"+own)
		if err != nil {
			t.Fatal(err)
		}
		if own[0] != '{' {
			h.JSONDevice = false
		}
		want := append(mustBuild(t, m, h).Args(), "-device", own)
		if diff := cmp.Diff(want, cmd.Args()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestTemplateErrors(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"syntax, with the line":           {"{{standard}}\n\n{{if}}", "template:3"},
		"a function that is unknown":      {"\n{{exec \"x\"}}", "template:2"},
		"a field that is unknown":         {"{{standard}}\n{{.Machine.Nme}}", "template:2:10"},
		"a group that is unknown":         {"{{standard}}\n{{group \"gpu\"}}", "template:2:2: executing \"template\" at <group \"gpu\">: error calling group: there is no group \"gpu\"; the groups are start, "},
		"without a group":                 {"{{without \"gpu\"}}", "there is no group \"gpu\""},
		"a line that is no JSON string":   {"-S\n\"x\n", `line 2 of the output, "x, is no JSON string`},
		"a zero byte":                     {`{{standard}}"\u0000"`, "zero byte"},
		"an argument that is too long":    {`{{standard}}{{printf "%200000d" 1 | json}}`, "200000 bytes"},
		"no end":                          {`{{define "x"}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{template "x"}}{{end}}{{template "x"}}`, "more than 4194304 bytes"},
		"too much":                        {`{{printf "%9000000d" 1}}`, "more than"},
		"no -S":                           {`{{without "start"}}`, "-S: use {{group \"start\"}}"},
		"no monitor":                      {`{{without "monitor"}}`, "the result lacks -chardev socket,id=charmonitor"},
		"a monitor of another kind":       {"-S\n-qmp\nunix:/x", "the result lacks -mon"},
		"nothing":                         {"", "use {{group \"monitor\"}}"},
		"a control character in an opt":   {`{{opt "a\nb"}}`, "control character"},
		"a value that JSON does not have": {`{{json standard}}{{json .Host}}{{json (index .Machine.Disks 7)}}`, "index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, err := qemucmd.BuildTemplate(small(), qemucmd.GenericHost(), test.source)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			for _, p := range qemucmd.Problems(err) {
				if p.Field != "template" {
					t.Errorf("field %s", p.Field)
				}
			}
			if diff := cmp.Diff(qemucmd.Command{}, cmd); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := qemucmd.BuildTemplate(qemucmd.Machine{}, qemucmd.GenericHost(), "{{standard}}"); err == nil {
		t.Error("a template makes an invalid machine valid")
	}
}

func TestTemplateNames(t *testing.T) {
	for name, want := range map[string]struct{ standard, refused bool }{
		"":                            {standard: true},
		"Standard-VM-latest.ftl.yaml": {standard: true},
		"Standard-VM-4.0.0.ftl.yaml":  {standard: true},
		"/opt/vmrunner/templates/Standard-VM-latest.ftl.yaml": {standard: true},
		"My-VM.ftl.yaml":    {refused: true},
		"dir/my.FTL":        {refused: true},
		"Standard-VM.yaml":  {},
		"my-vm.tmpl":        {},
		"myfatlyaml.gotmpl": {},
	} {
		if got := qemucmd.IsStandardTemplate(name); got != want.standard {
			t.Errorf("%q is standard: %v", name, got)
		}
		err := qemucmd.CheckTemplateName(name)
		if (err != nil) != want.refused {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "FreeMarker") || !strings.Contains(err.Error(), "{{standard}}")) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzTemplate: any template gives a command that can be controlled, or an
// error.
func FuzzTemplate(f *testing.F) {
	f.Add("{{standard}}")
	f.Add("{{without \"sound\"}}\n# x\n-append\n\"a\\nb\"\n")
	f.Add("{{group \"start\"}}{{group \"monitor\"}}{{opt .Machine.Name}}")
	f.Fuzz(func(t *testing.T, source string) {
		if strings.Contains(source, "range") {
			t.Skip("a template can count for as long as it likes")
		}
		cmd, err := qemucmd.BuildTemplate(small(), qemucmd.GenericHost(), source)
		if err == nil && !slices.Contains(cmd.Args(), "-S") {
			t.Errorf("%q", cmd.Args())
		}
		if err != nil && len(qemucmd.Problems(err)) == 0 {
			t.Errorf("%v is no list of problems", err)
		}
	})
}

// TestTemplatesEnd: a template that would go on for ever is refused, whether it
// writes anything or not.
func TestTemplatesEnd(t *testing.T) {
	for name, source := range map[string]string{
		"loop":            `{{range 1000000000000}}{{end}}`,
		"nested":          `{{range 10000000}}{{range 10000000}}{{if true}}{{end}}{{end}}{{end}}`,
		"in a condition":  `{{if true}}{{with 1}}{{range 1000000000000}}{{end}}{{end}}{{end}}`,
		"otherwise":       `{{if false}}{{else}}{{range 1000000000000}}{{end}}{{end}}`,
		"named templates": `{{define "a"}}{{template "b"}}{{template "b"}}{{end}}{{define "b"}}{{template "c"}}{{template "c"}}{{end}}{{define "c"}}{{range 1000000000}}{{end}}{{end}}{{template "a"}}`,
		"doubling":        `{{define "x"}}{{if gt . 0}}{{template "x" (slice "aaaa" 0 1 | len | printf "%d" | len)}}{{template "x" 1}}{{end}}{{end}}{{template "x" 1}}`,
	} {
		if _, err := qemucmd.BuildTemplate(small(), qemucmd.GenericHost(), "{{standard}}"+source); err == nil {
			t.Errorf("%s: was executed", name)
		} else if !strings.Contains(err.Error(), "does not end") && !strings.Contains(err.Error(), "depth") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is long, but ends, is executed.
	if _, err := qemucmd.BuildTemplate(small(), qemucmd.GenericHost(), "{{standard}}{{range 1000}}{{range 500}}{{end}}{{end}}"); err != nil {
		t.Error(err)
	}
}
