/**
 * Communicators over NCCL, in which each rank is one GPU.
 *
 * <p>Every rank has two communicators of NCCL, one for collectives and one for sends and receives,
 * so neither waits for the other. Each belongs to one stream and to one daemon thread,
 * "weft-lane-nccl-…", which makes every call on it. Each also has a communicator of the host, over
 * which ranks agree on an operation before NCCL starts it: NCCL itself waits without end if ranks
 * do not match, and cannot name a missing rank. A failure aborts NCCL on every rank.
 *
 * <p>Nothing is loaded before {@link io.weft.collectives.nccl.NcclLibrary#load} is called. The
 * caller owns the device. The communicator owns streams and staging memory. A window and its memory
 * belong to the caller that registered it.
 */
package io.weft.collectives.nccl;
