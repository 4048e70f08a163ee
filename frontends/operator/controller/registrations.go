package controller

// registrations lists all kinds of [spec.Kinds]. A new one is another line.
func registrations() []registration {
	return []registration{
		machineRegistration(), poolRegistration(), operationRegistration(), classRegistration(),
		diskRegistration(), imageRegistration(), clusterImageRegistration(), attachmentRegistration(),
	}
}
