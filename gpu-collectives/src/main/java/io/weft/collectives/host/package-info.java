/**
 * Collectives on the processors of hosts: through shared memory between ranks of one host, over
 * sockets between hosts, and through both where hosts have several ranks.
 *
 * <p>Start with {@link io.weft.collectives.host.HostCommunicators}, which creates communicators
 * with the settings of {@link io.weft.collectives.host.HostOptions}.
 *
 * <p>Operations run on the calling thread. A communicator with ranks on several hosts also has one
 * thread, "weft-agent-…", that answers other ranks about this one. The communicator owns its
 * mappings, sockets and threads until it is closed. Its files are deleted as soon as every rank has
 * mapped them, so a killed process leaves no memory behind.
 */
package io.weft.collectives.host;
