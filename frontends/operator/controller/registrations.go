package controller

func registrations() []registration {
	return []registration{
		machineRegistration(), poolRegistration(), operationRegistration(), classRegistration(),
		diskRegistration(), imageRegistration(), clusterImageRegistration(), attachmentRegistration(),
	}
}
