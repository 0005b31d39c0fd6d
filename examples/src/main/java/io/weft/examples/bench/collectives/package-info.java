/**
 * {@code weft bench collectives}: the benchmark of collectives, in the manner of nccl-tests. The
 * ranks of Weft and of OpenMPI are separate processes, which alternate on the same machine. Start
 * at {@code CollectivesBench}, and at {@code RankMain} for a rank of Weft.
 *
 * <p>One thread drives the benchmark. For each child process a daemon thread reads its answers.
 * Between measurements all ranks wait without using a processor. The caller that starts a side
 * closes it.
 */
package io.weft.examples.bench.collectives;
