/**
 * Communicators over NCCL: ranks are GPUs, one each.
 *
 * <p>Every rank has two communicators of NCCL, one for collectives and one for sends and receives,
 * so that neither waits for the other; each belongs to one daemon thread, "weft-lane-nccl-…", which
 * makes every call on it, and to one stream. Beside each runs a communicator of the host, over
 * which ranks agree on an operation before NCCL hears of it: NCCL itself waits for ever where ranks
 * do not match, and cannot say who is missing. A failure aborts NCCL on every rank.
 *
 * <p>Nothing here is loaded unless {@link io.weft.collectives.nccl.NcclLibrary#load} is called. The
 * device belongs to the caller, streams and staging memory to the communicator, a window and its
 * memory to whoever registered it.
 */
package io.weft.collectives.nccl;
