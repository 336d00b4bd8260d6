// What merope-cli tells the shell. The sysexits part is core/base/exit_codes.h.
#pragma once

#include "core/base/error.h"
#include "core/base/exit_codes.h"

namespace merope::cli {

enum CliExitCode : int {
  kExitJobFailed = 1,      // the job failed or waited too long
  kExitJobCancelled = 2,   // the job was cancelled
  kExitCanNotWrite = 73,   // the output can not be written
  kExitTryLater = 75,      // the queue is full
  kExitInterrupted = 130,  // stopped waiting; the job goes on
};

// Exit code of a call that failed.
constexpr int exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kOutOfRange: return kExitData;
    case ErrorCode::kNotFound: return kExitNoInput;
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded: return kExitUnavailable;
    case ErrorCode::kFailedPrecondition: return kExitCanNotWrite;
    case ErrorCode::kResourceExhausted: return kExitTryLater;
    case ErrorCode::kCancelled: return kExitInterrupted;
    default: return kExitSoftware;
  }
}

inline constexpr const char* kExitCodeHelp =
    "Exit codes:\n"
    "  0    done\n"
    "  1    the job failed or waited longer than --max-queue-wait\n"
    "  2    the job was cancelled\n"
    "  64   the command line is wrong\n"
    "  65   the request was refused, or an input file holds something else than it should; every wrong field is named\n"
    "  66   an input file or a job is not there\n"
    "  69   no server answers\n"
    "  70   a fault of the service or of this program, or the clip arrived damaged\n"
    "  73   the output can not be written\n"
    "  75   the queue is full: try again later\n"
    "  130  stopped waiting on Ctrl-C; the job goes on";

}  // namespace merope::cli
