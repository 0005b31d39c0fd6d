/**
 * {@code weft bench transfer}: the benchmark of block transfers and array transfers between
 * executors. Start at {@code TransferBench}, and at {@code PeerMain} for an executor. One thread
 * drives the benchmark. Executors are separate processes, which a {@code Cleanup} closes.
 */
package io.weft.examples.bench.transfer;
