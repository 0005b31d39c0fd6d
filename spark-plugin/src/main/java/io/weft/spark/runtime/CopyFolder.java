package io.weft.spark.runtime;

import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopyStore;
import io.weft.shuffle.store.PrivateFolders;
import io.weft.spark.config.SurviveSettings;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder of an application's copies, {@code <path>/weft-<user>/<application>}, with a file for
 * each copy, {@code <shuffle id>/<map id>-<executor id>}. The driver creates it, renews the mark in
 * it and deletes it. Only its user can read it. A folder {@code weft-<user>} of another user, or
 * one that others may write to, is not used. Thread-safe.
 */
public final class CopyFolder implements CopyStore {
  private static final Logger LOG = LoggerFactory.getLogger(CopyFolder.class);
  private static final String MARK = "alive";
  private static final int MARK_BYTES = 16;
  private static final FsPermission OWNER_ONLY = new FsPermission((short) 0700);

  private static final Pattern MILLIS = Pattern.compile("\\d{1,15}");

  private final FileSystem files;
  private final Path folder;

  /** The end of the names of this executor's files. Empty on the driver, which writes none. */
  private final String own;

  private final byte[] mark;

  /** Whether the folder of the user was found safe. No other user can change that. */
  private volatile boolean safe;

  private CopyFolder(FileSystem files, Path folder, String writer, Duration sweepAge) {
    this.files = files;
    this.folder = folder;
    this.own = writer;
    this.mark = Long.toString(sweepAge.toMillis()).getBytes(StandardCharsets.US_ASCII);
  }

  /**
   * Opens the folder of an application, which need not exist.
   *
   * @param application name that is unique among all applications
   * @param writer id of this executor
   * @throws IOException if its file system cannot be reached
   */
  public static CopyFolder open(SparkConf conf, String application, String writer)
      throws IOException {
    Path path = new Path(SurviveSettings.path(conf).orElseThrow());
    Configuration hadoop = SparkHadoopUtil.get().newConfiguration(conf);
    FileSystem files = connect(path, hadoop);
    Path folder = new Path(ofUser(files, path), application);
    return new CopyFolder(files, folder, writer, SurviveSettings.SWEEP_AGE.get(conf));
  }

  /** Opens a connection of its own, because closing a shared one would close it for others. */
  private static FileSystem connect(Path path, Configuration hadoop) throws IOException {
    FileSystem files = FileSystem.newInstance(path.toUri(), hadoop);
    if (files instanceof LocalFileSystem local) {
      // Copies have checksums of their own.
      local.setWriteChecksum(false);
      local.setVerifyChecksum(false);
    }
    return files;
  }

  private static Path ofUser(FileSystem files, Path path) throws IOException {
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    return files.makeQualified(new Path(path, "weft-" + user));
  }

  /**
   * Refuses a folder of a user that another user made. File systems without permissions, such as
   * object stores, have other means.
   */
  private static void requireSafe(FileSystem files, Path ofUser) throws IOException {
    if (files instanceof LocalFileSystem) {
      if (Files.notExists(local(ofUser), LinkOption.NOFOLLOW_LINKS)) {
        throw new NoSuchFileException(ofUser.toString());
      }
      Optional<String> objection = PrivateFolders.objection(local(ofUser));
      if (objection.isPresent()) {
        throw new IOException(objection.get());
      }
    } else if (files.hasPathCapability(ofUser, CommonPathCapabilities.FS_PERMISSIONS)) {
      FileStatus found = files.getFileStatus(ofUser);
      String user = UserGroupInformation.getCurrentUser().getShortUserName();
      FsPermission permission = found.getPermission();
      if (!found.isDirectory() || !found.getOwner().equals(user)) {
        throw new IOException(ofUser + " belongs to " + found.getOwner() + ", not to " + user);
      }
      if (permission.getGroupAction().implies(FsAction.WRITE)
          || permission.getOtherAction().implies(FsAction.WRITE)) {
        throw new IOException(ofUser + " is open to other users; set its mode to 0700");
      }
    }
  }

  private void requireSafe() throws IOException {
    if (!safe) {
      requireSafe(files, folder.getParent());
      safe = true;
    }
  }

  private static java.nio.file.Path local(Path path) {
    return Paths.get(path.toUri().getPath());
  }

  /** Ids of executors may have any characters. */
  private Path file(BlockKey key, String writer) {
    String name = key.mapId() + "-" + URLEncoder.encode(writer, StandardCharsets.UTF_8);
    return new Path(ofShuffle(key.shuffleId()), name);
  }

  private Path ofShuffle(int shuffle) {
    return new Path(folder, Integer.toString(shuffle));
  }

  @Override
  public OutputStream create(BlockKey key) throws IOException {
    Path file = file(key, own);
    if (files instanceof LocalFileSystem) {
      createShuffle(local(file.getParent()));
      return Files.newOutputStream(local(file));
    }
    requireExisting();
    return files.create(file, true);
  }

  /** Hadoop starts a process for each local file, to set its permissions. */
  private void createShuffle(java.nio.file.Path shuffle) throws IOException {
    if (!safe || !Files.isDirectory(shuffle)) {
      requireExisting();
      try {
        Files.createDirectory(shuffle);
      } catch (FileAlreadyExistsException e) {
        LOG.debug("Another executor has just created {}", shuffle);
      }
    }
  }

  /** A folder that the driver did not create, or has deleted, would never be deleted. */
  private void requireExisting() throws IOException {
    if (!files.exists(folder)) {
      throw new NoSuchFileException(folder.toString(), null, "the driver has not created it");
    }
    requireSafe();
  }

  @Override
  public CopyInput open(BlockKey key, String writer) throws IOException {
    requireSafe();
    FSDataInputStream input = files.open(file(key, writer));
    return new CopyInput() {
      @Override
      public int read(long position, byte[] into, int offset, int least, int most)
          throws IOException {
        int done = 0;
        while (done < least) {
          int count = input.read(position + done, into, offset + done, most - done);
          if (count < 0) {
            throw new EOFException("the copy ends after " + (position + done) + " bytes");
          }
          done += count;
        }
        return done;
      }

      @Override
      public void close() throws IOException {
        input.close();
      }
    };
  }

  @Override
  public void delete(BlockKey key) throws IOException {
    files.delete(file(key, own), false);
  }

  /** Creates the folder and its mark. */
  public void create() throws IOException {
    Path ofUser = folder.getParent();
    if (!files.exists(ofUser)) {
      FileSystem.mkdirs(files, ofUser, OWNER_ONLY);
    }
    requireSafe();
    FileSystem.mkdirs(files, folder, OWNER_ONLY);
    writeMark();
  }

  /**
   * Renews the mark, which keeps the folder from sweeps.
   *
   * @throws NoSuchFileException if the folder does not exist
   */
  public void mark() throws IOException {
    if (!files.exists(folder)) {
      throw new NoSuchFileException(folder.toString());
    }
    writeMark();
  }

  /** The mark has the age at which the folder is swept. */
  private void writeMark() throws IOException {
    Path file = new Path(folder, MARK);
    try (OutputStream out =
        files instanceof LocalFileSystem
            ? Files.newOutputStream(local(file))
            : files.create(file, true)) {
      out.write(mark);
    }
  }

  /** Deletes all copies of a shuffle. */
  public void deleteShuffle(int shuffle) throws IOException {
    files.delete(ofShuffle(shuffle), true);
  }

  /** Deletes the folder. */
  public void deleteAll() throws IOException {
    files.delete(folder, true);
  }

  /**
   * Deletes the folders of applications of this user whose mark was not renewed for some time. A
   * folder that cannot be deleted does not keep others from it.
   *
   * @param path of the copies of all applications
   * @param age counts for applications that have set no longer one
   * @return the deleted folders
   */
  public static List<String> sweep(String path, Configuration hadoop, Duration age)
      throws IOException {
    List<String> deleted = new ArrayList<>();
    Path root = new Path(path);
    try (FileSystem files = connect(root, hadoop)) {
      Path ofUser = ofUser(files, root);
      if (!files.exists(ofUser)) {
        return deleted;
      }
      requireSafe(files, ofUser);
      for (FileStatus application : files.listStatus(ofUser)) {
        try {
          if (isDead(files, application, age) && files.delete(application.getPath(), true)) {
            deleted.add(application.getPath().toString());
          }
        } catch (IOException e) {
          LOG.warn("Copies in {} were not deleted", application.getPath(), e);
        }
      }
    }
    return deleted;
  }

  /** Some file systems have no times of folders, so the mark counts where there is one. */
  private static boolean isDead(FileSystem files, FileStatus application, Duration age)
      throws IOException {
    Path mark = new Path(application.getPath(), MARK);
    if (!files.exists(mark)) {
      return isOlder(application, age.toMillis());
    }
    return isOlder(files.getFileStatus(mark), Math.max(age.toMillis(), ageIn(files, mark)));
  }

  private static boolean isOlder(FileStatus file, long millis) {
    return file.getModificationTime() < System.currentTimeMillis() - millis;
  }

  private static long ageIn(FileSystem files, Path mark) throws IOException {
    try (FSDataInputStream in = files.open(mark)) {
      String millis = new String(in.readNBytes(MARK_BYTES), StandardCharsets.US_ASCII);
      return MILLIS.matcher(millis).matches() ? Long.parseLong(millis) : 0;
    }
  }

  @Override
  public void close() {
    try {
      files.close();
    } catch (IOException e) {
      LOG.debug("The connection to {} was not closed", folder, e);
    }
  }

  @Override
  public String toString() {
    return folder.toString();
  }
}
