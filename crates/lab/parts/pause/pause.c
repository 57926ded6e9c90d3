// Holds the namespaces of a pod: waits for the signal to end and, as process 1 of a pod that shares its process namespace,
// reaps what others leave behind.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

int main(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) {
    perror("pause: sigprocmask");
    return 1;
  }
  for (;;) {
    int signal = sigwaitinfo(&signals, NULL);
    if (signal == SIGINT || signal == SIGTERM) {
      return 0;
    }
    if (signal == SIGCHLD) {
      while (waitpid(-1, NULL, WNOHANG) > 0) {
      }
    } else if (signal < 0 && errno != EINTR) {
      perror("pause: sigwaitinfo");
      return 1;
    }
  }
}
