package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// calm is how long the files must be unchanged before they are read: a writer may not have
// finished.
const calm = 100 * time.Millisecond

// ConfigFollower watches a configuration file and the display secret beside it, and passes on their
// new content. It notices files that are written or replaced, and updates of a Kubernetes volume:
// there the files are links into a directory which is itself a link, "..data", that is replaced.
type ConfigFollower struct {
	// Path is the configuration file.
	Path string
	// Content is the file's content when the machine was started; it is not passed on again.
	Content []byte
	// Config is called with each new configuration, defaulted and valid, and its warnings. Like the
	// functions below, it may be nil.
	Config func(c runnerconfig.Config, warnings []string)
	// Refused is called with the reason why a new content is no valid configuration, once for each.
	Refused func(error)
	// Changed is called when one of the files has changed, before Config. The display secret may be
	// new.
	Changed func()
	// Slow, if not nil, is called with the reason why the files cannot be watched and are polled
	// every ten seconds instead.
	Slow func(error)

	watcher func() (*fsnotify.Watcher, error) // nil: fsnotify's
	pause   time.Duration                     // polling interval; 0: slowPause
	emptied bool                              // it was empty at the last read
}

// slowPause is the polling interval of files that cannot be watched, because the user's inotify
// instances, which all pods of a node share, are used up.
const slowPause = 10 * time.Second

// Follow watches until ctx ends, and then returns nil; it fails if the file's directory does not
// exist. Earlier changes are noticed too. It does no work while nothing changes, unless the files
// cannot be watched.
func (f *ConfigFollower) Follow(ctx context.Context) error {
	if f.Path == "" {
		return errors.New("follow a configuration: there is no path of its file")
	}
	f.nobody()
	open := f.watcher
	if open == nil {
		open = fsnotify.NewWatcher
	}
	w, err := open()
	if err == nil {
		err = f.follow(ctx, w)
		err = errors.Join(err, w.Close())
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	err = fmt.Errorf("follow %s: %w", f.Path, err)
	if errors.Is(err, os.ErrNotExist) {
		return err // the file cannot appear
	}
	if f.Slow != nil {
		f.Slow(err)
	}
	return f.poll(ctx)
}

func (f *ConfigFollower) nobody() {
	if f.Config == nil {
		f.Config = func(runnerconfig.Config, []string) {}
	}
	if f.Refused == nil {
		f.Refused = func(error) {}
	}
	if f.Changed == nil {
		f.Changed = func() {}
	}
}

func (f *ConfigFollower) poll(ctx context.Context) error {
	pause := f.pause
	if pause == 0 {
		pause = slowPause
	}
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		f.Changed()
		f.read()
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func (f *ConfigFollower) follow(ctx context.Context, w *fsnotify.Watcher) error {
	dir := filepath.Dir(f.Path)
	if err := w.Add(dir); err != nil {
		return err
	}
	elsewhere := f.watchTarget(w, dir, "")
	timer := time.NewTimer(0) // for what changed before the watch began
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, ok := <-w.Events:
			if !ok {
				return errors.New("the watch has ended")
			}
			if f.concerns(ev.Name, elsewhere) {
				timer.Reset(calm)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return errors.New("the watch has ended")
			}
			// Events were lost (inotify(7), IN_Q_OVERFLOW): read the files.
			f.Refused(fmt.Errorf("follow %s: %w", f.Path, err))
			timer.Reset(calm)
		case <-timer.C:
			elsewhere = f.watchTarget(w, dir, elsewhere)
			f.Changed()
			if f.read() {
				timer.Reset(calm)
			}
		}
	}
}

// concerns reports whether a file is a followed one. Others in the same directory may be written
// all the time.
func (f *ConfigFollower) concerns(name, elsewhere string) bool {
	switch filepath.Base(name) {
	case filepath.Base(f.Path), displayPasswordFile, passwordExpiryFile, "..data":
		return true
	}
	return elsewhere != "" && filepath.Dir(name) == elsewhere
}

func (f *ConfigFollower) watchTarget(w *fsnotify.Watcher, dir, before string) string {
	real, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return before
	}
	target := filepath.Dir(real)
	if same, err := filepath.EvalSymlinks(dir); err == nil && same == target {
		target = ""
	}
	if target == before {
		return before
	}
	if before != "" {
		_ = w.Remove(before) // usually deleted with its directory
	}
	if target != "" && w.Add(target) != nil {
		return ""
	}
	return target
}

// read reads the file and passes on new content. It reports whether to read again soon: a file that
// has just been emptied is probably being written in place.
func (f *ConfigFollower) read() (again bool) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return false // between two links; an event follows
	}
	if err != nil {
		f.Refused(fmt.Errorf("read the configuration: %w", err))
		return false
	}
	if empty := len(data) == 0; empty != f.emptied {
		if f.emptied = empty; empty {
			return true
		}
	}
	if bytes.Equal(data, f.Content) {
		return false
	}
	f.Content = data
	c, warnings, err := ReadConfig(data)
	if err != nil {
		f.Refused(fmt.Errorf("%s: %w", f.Path, err))
		return false
	}
	f.Config(c, warnings)
	return false
}

// ReadConfig parses, defaults and validates a configuration.
func ReadConfig(data []byte) (runnerconfig.Config, []string, error) {
	c, warnings, err := runnerconfig.Parse(data)
	if err != nil {
		return c, nil, err
	}
	runnerconfig.Default(&c)
	return c, warnings, runnerconfig.Validate(&c)
}
