package io.weft.compat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.service.Service;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.launcher.JavaModuleOptions;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.resource.ResourceProfile$;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The master {@code yarn}: two executors in containers of a small YARN, which runs in this JVM and
 * checks their physical memory. It stands in for Spark's module for YARN, which not every mirror
 * of Maven Central has: it asks for containers of the size that Spark computes, and replaces none.
 */
public final class YarnContainers implements ExternalClusterManager {
  private static final Logger LOG = LoggerFactory.getLogger(YarnContainers.class);
  private static final int EXECUTORS = 2;
  private static final int CORES = 2;
  private static final int NODE_MIB = 6144;
  private static final long MIB = 1L << 20;
  private static final long LEAST_OVERHEAD_MIB = 384;
  private static final double OVERHEAD_FACTOR = 0.1;
  private static final long TIMEOUT_NANOS = TimeUnit.MINUTES.toNanos(2);
  private static final long POLL_MILLIS = 200;

  /** Why containers ended in the latest application, while Spark still needed them. */
  private static final ConcurrentLinkedQueue<String> ENDED = new ConcurrentLinkedQueue<>();

  /** The reasons for which YARN ended containers in the latest application. */
  static List<String> ended() {
    return List.copyOf(ENDED);
  }

  /** As {@link #ended}, after a job that failed: Spark may notice the end before YARN says why. */
  static List<String> awaitEnded() {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (ENDED.isEmpty() && System.nanoTime() < end) {
      pause();
    }
    return ended();
  }

  private static void pause() {
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(POLL_MILLIS));
  }

  @Override
  public boolean canCreate(String master) {
    return master.equals("yarn");
  }

  @Override
  public TaskScheduler createTaskScheduler(SparkContext context, String master) {
    return new TaskSchedulerImpl(context);
  }

  @Override
  public SchedulerBackend createSchedulerBackend(
      SparkContext context, String master, TaskScheduler scheduler) {
    return new Backend(context, (TaskSchedulerImpl) scheduler);
  }

  @Override
  public void initialize(TaskScheduler scheduler, SchedulerBackend backend) {
    ((TaskSchedulerImpl) scheduler).initialize(backend);
  }

  /** Starts YARN and the executors, and ends both. */
  private static final class Backend extends CoarseGrainedSchedulerBackend {
    private final SparkContext context;
    private final ScheduledExecutorService heartbeats =
        Executors.newSingleThreadScheduledExecutor(
            action -> {
              Thread thread = new Thread(action, "weft-compat-yarn");
              thread.setDaemon(true);
              return thread;
            });
    private final Map<Long, Long> mostMiB = new ConcurrentHashMap<>();
    private final MiniYARNCluster yarn = new MiniYARNCluster("yarn", 1, 1, 1);
    private final long containerMiB;
    private ApplicationId application;
    private AMRMClient<AMRMClient.ContainerRequest> master;
    private NMClient nodes;
    private YarnClient client;
    private int started;
    private volatile int running;
    private volatile boolean stopping;

    Backend(SparkContext context, TaskSchedulerImpl scheduler) {
      super(scheduler, context.env().rpcEnv());
      this.context = context;
      this.containerMiB = containerMiB(context.conf());
    }

    /** The size that Spark asks YARN for. */
    private static long containerMiB(SparkConf conf) {
      ResourceProfile profile = ResourceProfile$.MODULE$.getOrCreateDefaultProfile(conf);
      return ResourceProfile$.MODULE$
          .getResourcesForClusterManager(
              profile.id(),
              profile.executorResources(),
              LEAST_OVERHEAD_MIB,
              OVERHEAD_FACTOR,
              conf,
              false,
              scala.collection.immutable.Map$.MODULE$.empty())
          .totalMemMiB();
    }

    @Override
    public String applicationId() {
      return application.toString();
    }

    @Override
    public void start() {
      super.start();
      ENDED.clear();
      try {
        yarn.init(configuration());
        yarn.start();
        submit();
        for (int i = 0; i < EXECUTORS; i++) {
          Resource size = Resource.newInstance((int) containerMiB, CORES);
          master.addContainerRequest(
              new AMRMClient.ContainerRequest(size, null, null, Priority.newInstance(1)));
        }
      } catch (Exception | LinkageError e) {
        throw new IllegalStateException("YARN does not start", e);
      }
      heartbeats.scheduleWithFixedDelay(
          this::heartbeat, 0, POLL_MILLIS, TimeUnit.MILLISECONDS);
    }

    private static YarnConfiguration configuration() {
      YarnConfiguration conf = new YarnConfiguration();
      // Without it the small cluster switches its checks of memory off.
      conf.setBoolean("yarn.minicluster.control-resource-monitoring", true);
      conf.setBoolean("yarn.nodemanager.pmem-check-enabled", true);
      conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
      conf.setInt("yarn.nodemanager.container-monitor.interval-ms", 500);
      conf.setInt("yarn.minicluster.yarn.nodemanager.resource.memory-mb", NODE_MIB);
      conf.setInt("yarn.nodemanager.resource.memory-mb", NODE_MIB);
      conf.setInt("yarn.scheduler.minimum-allocation-mb", 1);
      conf.set(
          "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100.0");
      conf.set("yarn.scheduler.capacity.root.queues", "default");
      conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
      conf.set("yarn.scheduler.capacity.root.default.state", "RUNNING");
      return conf;
    }

    /** Registers this JVM as the master of an application, as Spark's unmanaged one does. */
    private void submit() throws Exception {
      client = YarnClient.createYarnClient();
      client.init(yarn.getConfig());
      client.start();
      ApplicationSubmissionContext submission =
          client.createApplication().getApplicationSubmissionContext();
      application = submission.getApplicationId();
      submission.setApplicationName(context.appName());
      submission.setUnmanagedAM(true);
      submission.setQueue("default");
      submission.setAMContainerSpec(
          ContainerLaunchContext.newInstance(null, null, null, null, null, null));
      submission.setResource(Resource.newInstance(1, 1));
      client.submitApplication(submission);
      long end = System.nanoTime() + TIMEOUT_NANOS;
      while (client.getAMRMToken(application) == null) {
        if (System.nanoTime() > end) {
          throw new TimeoutException("YARN did not accept the application");
        }
        pause();
      }
      // A user of its own, because this JVM's one would keep the tokens of earlier applications.
      UserGroupInformation user =
          UserGroupInformation.createRemoteUser(
              UserGroupInformation.getCurrentUser().getShortUserName());
      user.addToken(client.getAMRMToken(application));
      master = AMRMClient.createAMRMClient();
      user.doAs(
          (PrivilegedExceptionAction<Object>)
              () -> {
                master.init(yarn.getConfig());
                master.start();
                return master.registerApplicationMaster("127.0.0.1", 0, "");
              });
      nodes = NMClient.createNMClient();
      nodes.init(yarn.getConfig());
      nodes.start();
    }

    /** Without replacements, jobs would wait for a lost executor, so they are cancelled. */
    private void heartbeat() {
      try {
        AllocateResponse response = master.allocate(0.5f);
        for (Container container : response.getAllocatedContainers()) {
          nodes.startContainer(container, launch(started++));
          running++;
        }
        for (ContainerStatus status : response.getCompletedContainersStatuses()) {
          running--;
          if (!stopping) {
            LOG.warn("Container ended: {}", status.getDiagnostics());
            context.cancelAllJobs();
            ENDED.add(status.getDiagnostics());
          }
        }
        measure();
      } catch (IOException | YarnException | RuntimeException e) {
        LOG.warn("No heartbeat", e);
      }
    }

    /** The resident memory of the executors, as YARN counts it. */
    private void measure() throws IOException {
      for (ProcessHandle process : ProcessHandle.current().descendants().toList()) {
        Path status = Path.of("/proc", Long.toString(process.pid()), "status");
        try {
          Files.readAllLines(status).stream()
              .filter(line -> line.startsWith("VmRSS:"))
              .map(line -> Long.parseLong(line.replaceAll("\\D", "")) / 1024)
              .forEach(mib -> mostMiB.merge(process.pid(), mib, Math::max));
        } catch (NoSuchFileException e) {
          LOG.debug("The process has ended", e);
        }
      }
    }

    private ContainerLaunchContext launch(int executor) {
      SparkConf conf = context.conf();
      List<String> command = new ArrayList<>();
      command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
      command.add("-Xmx" + conf.getSizeAsMb("spark.executor.memory", "1g") + "m");
      command.add(JavaModuleOptions.defaultModuleOptions());
      command.add(conf.get("spark.executor.extraJavaOptions", ""));
      command.add("-cp");
      command.add("'" + System.getenv("SPARK_HOME") + "/jars/*'");
      command.add("org.apache.spark.executor.CoarseGrainedExecutorBackend");
      command.add("--driver-url");
      command.add(
          "spark://CoarseGrainedScheduler@127.0.0.1:" + conf.get("spark.driver.port"));
      command.add("--executor-id " + (executor + 1));
      command.add("--hostname 127.0.0.1 --cores " + CORES);
      command.add("--app-id " + application + " --resourceProfileId 0");
      command.add("1>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stdout");
      command.add("2>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stderr");
      return ContainerLaunchContext.newInstance(
          new HashMap<>(),
          new HashMap<>(Map.of("SPARK_LOCAL_IP", "127.0.0.1")),
          List.of(String.join(" ", command)),
          null,
          null,
          null);
    }

    @Override
    public boolean sufficientResourcesRegistered() {
      return totalRegisteredExecutors().get() >= EXECUTORS;
    }

    /** Ends the executors before YARN, which would kill them. */
    @Override
    public void stop() {
      stopping = true;
      super.stop();
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (running > 0 && System.nanoTime() < end) {
        pause();
      }
      heartbeats.shutdownNow();
      LOG.warn(
          "Containers of {} MiB had at most {} MiB resident", containerMiB, mostMiB.values());
      try {
        if (master != null) {
          master.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
        }
      } catch (IOException | YarnException e) {
        LOG.warn("The application was not unregistered", e);
      }
      Stream.of(nodes, master, client, yarn).filter(Objects::nonNull).forEach(Service::stop);
    }
  }
}
