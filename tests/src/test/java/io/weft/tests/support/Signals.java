package io.weft.tests.support;

/** Sends signals to processes, by process id. */
public final class Signals {
  private Signals() {}

  /** Kills a process at once; none of its code runs any more. */
  public static void kill(long pid) {
    send("-KILL", pid);
  }

  /** Suspends a process; it keeps its memory, files and connections. */
  public static void stop(long pid) {
    send("-STOP", pid);
  }

  /** Resumes a suspended process. */
  public static void resume(long pid) {
    send("-CONT", pid);
  }

  private static void send(String signal, long pid) {
    ChildProcess.run("/bin/kill", signal, Long.toString(pid));
  }
}
