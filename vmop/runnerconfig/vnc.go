package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/qemucmd"
)

func (v *VNC) write(w *jsonwriter.Writer) {
	w.Open('{')
	number(w, "port", v.Port)
	w.Text("address", v.Address)
	w.Text("socket", v.Socket)
	number(w, "websocket", v.Websocket)
	w.Close('}')
}

func (*VNC) protocol() qemucmd.DisplayProtocol  { return qemucmd.VNCProtocol }
func (v *VNC) port(i int) **int                 { return [...]**int{&v.Port, &v.Websocket}[i] }
func (v *VNC) place() (address, socket *string) { return &v.Address, &v.Socket }
func (*VNC) open() *bool                        { return nil }
func (*VNC) setDefaults()                       {}
func (*VNC) validate(*validator)                {}

func (v *VNC) machine(d *qemucmd.Display, at listening, password bool) {
	d.VNC = &qemucmd.VNC{Address: at.address, Socket: at.socket, Port: at.port, Password: password}
	if v.Websocket != nil {
		d.VNC.Websocket = *v.Websocket
	}
}
