package qemucmd

import (
	"fmt"
	"text/template"
	"text/template/parse"
)

// maxTemplateSteps bounds the rounds of loops and the uses of named templates. A loop over all
// disks within one over all networks has some ten thousand.
const maxTemplateSteps = 1 << 20

// stepFunction is the function that counts steps. A template that calls it itself counts one more.
const stepFunction = "_step"

// steps counts while one template is executed. Text/template has no bound of its own: a loop that
// writes nothing would run for ever.
type steps int

func (s *steps) step() (string, error) {
	if *s++; *s > maxTemplateSteps {
		return "", fmt.Errorf("the template does not end within %d rounds of its loops", maxTemplateSteps)
	}
	return "", nil
}

func countSteps(t *template.Template) {
	for _, named := range t.Templates() {
		if named.Tree != nil && named.Tree.Root != nil {
			countIn(named.Tree.Root)
			prependStep(named.Tree.Root)
		}
	}
}

func countIn(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			countIn(n.List)
			countIn(n.ElseList)
			prependStep(n.List)
		case *parse.IfNode:
			countIn(n.List)
			countIn(n.ElseList)
		case *parse.WithNode:
			countIn(n.List)
			countIn(n.ElseList)
		}
	}
}

func prependStep(list *parse.ListNode) {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: list.Pos, Args: []parse.Node{parse.NewIdentifier(stepFunction).SetPos(list.Pos)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: list.Pos, Cmds: []*parse.CommandNode{call}}
	list.Nodes = append([]parse.Node{&parse.ActionNode{NodeType: parse.NodeAction, Pos: list.Pos, Pipe: pipe}}, list.Nodes...)
}
