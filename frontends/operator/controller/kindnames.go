package controller

// The kinds of objects, as in [reconcile.Target].
const (
	kindPod       = "Pod"
	kindClaim     = "PersistentVolumeClaim"
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	kindService   = "Service"
)
