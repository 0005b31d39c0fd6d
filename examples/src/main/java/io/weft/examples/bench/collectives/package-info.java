/**
 * The benchmark of collectives, in the manner of nccl-tests: ranks in processes of their own, ours
 * and OpenMPI's, which take turns on the same machine.
 *
 * <p>One thread drives everything; each child process has a daemon thread that reads its answers.
 * Between measurements all ranks wait without using a processor. Whoever starts a side closes it.
 */
package io.weft.examples.bench.collectives;
