package io.weft.examples.train;

import java.io.Serializable;

/**
 * What a rank did in one run, which may have begun at a checkpoint.
 *
 * @param rank who
 * @param firstStep where it began, counted through all epochs
 * @param steps that it did
 * @param rows that it trained on
 * @param lastLoss of the last step, over all ranks
 * @param seconds of its steps
 * @param waitSeconds of them, in which it waited for averages
 * @param copiedBytes to make batches of what was exchanged
 * @param parametersCrc of all parameters at the end: the same on all ranks
 */
public record RankReport(
    int rank,
    long firstStep,
    long steps,
    long rows,
    double lastLoss,
    double seconds,
    double waitSeconds,
    long copiedBytes,
    long parametersCrc)
    implements Serializable {}
