package agent

import (
	"errors"
	"fmt"
	"os/user"
	"regexp"
	"strings"
)

// Errors of CheckUser.
var (
	ErrForbidden   = errors.New("must not be logged in")
	ErrInvalidUser = errors.New("not a user's name")
)

// validUser excludes names that programs could take for an option or a path, and special
// characters.
var validUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$`)

// CheckUser reports whether a user may be logged in: the name must be valid and not one of root's.
func CheckUser(name string) error {
	// Many programs would take a number for a user ID.
	if !validUser.MatchString(name) || strings.Trim(name, "0123456789") == "" {
		return fmt.Errorf("%.80q: %w", name, ErrInvalidUser)
	}
	if u, err := user.Lookup(name); name == "root" || err == nil && u.Uid == "0" {
		return fmt.Errorf("%s: %w", name, ErrForbidden)
	}
	return nil
}
