/**
 * Collectives of the host's own processors: through shared memory between ranks of one host, over
 * sockets between hosts, through both where hosts have several ranks.
 *
 * <p>Operations run on the thread that calls them. A communicator whose ranks are on several hosts
 * also has one thread, "weft-agent-…", that answers other ranks about this one. The communicator
 * owns its mappings, sockets and threads until it is closed; its files are deleted as soon as every
 * rank has mapped them, so a killed process leaves none.
 */
package io.weft.collectives.host;
