/**
 * Communicators over NCCL, in which each rank is one GPU. Start with {@link
 * io.weft.collectives.nccl.NcclCommunicators}, which creates a {@link
 * io.weft.collectives.nccl.DeviceCommunicator}; {@link io.weft.collectives.nccl.NcclLibrary} loads
 * NCCL and names its version.
 *
 * <p>Every rank has two communicators of NCCL, one for collectives and one for sends and receives,
 * each with its own stream and daemon thread ("weft-lane-nccl-…"). Beside each runs a communicator
 * of the host, over which ranks agree on an operation before NCCL starts it: NCCL itself waits
 * without end if ranks do not match. A failure aborts NCCL on every rank.
 *
 * <p>Buffers of all ranks are windows in memory of a {@link io.weft.collectives.nccl.DeviceArena},
 * which outlives communicators.
 *
 * <p>A peer window is GPU memory of one host's ranks that their devices write directly, without
 * NCCL. It keeps its memory until no rank can write to it any more. Nothing is loaded before {@link
 * io.weft.collectives.nccl.NcclLibrary#load} is called.
 */
package io.weft.collectives.nccl;
