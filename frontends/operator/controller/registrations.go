package controller

// registrations are all kinds that it looks after, which are those of
// [spec.Kinds]. A new one is another line.
func registrations() []registration {
	return []registration{
		machineRegistration(), poolRegistration(), operationRegistration(), classRegistration(),
		diskRegistration(), imageRegistration(), clusterImageRegistration(), attachmentRegistration(),
	}
}
